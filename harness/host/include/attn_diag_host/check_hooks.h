// What instrumented code tells the checker that the compiler's call-outs do not.
#pragma once

#include <type_traits>

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// A local array of the calling thread has just been declared and holds nothing yet. Called by kernels'
// code, after the declaration; without a checker it does nothing.
void local_array(const void* array, std::size_t bytes, const char* name, const char* file,
                 int line);

// A pointer into dynamic shared memory has a name in the kernel's source.
void shared_pointer(const char* name, const volatile void* pointer);

// What the source pass writes behind `T array[n];` in device code. In a build that is not instrumented it
// is nothing; of a class with a constructor, too, which has set the elements or not as it likes.
template <class T>
inline __attribute__((always_inline)) void declared_without_value(
    [[maybe_unused]] T& array, [[maybe_unused]] const char* name,
    [[maybe_unused]] const char* file = __builtin_FILE(),
    [[maybe_unused]] int line = __builtin_LINE()) {
#if ATTN_DIAG_HOST_INSTRUMENTED
  if constexpr (std::is_trivially_default_constructible_v<std::remove_all_extents_t<T>>)
    local_array(const_cast<const void*>(static_cast<const volatile void*>(&array)), sizeof array,
                name, file, line);
#endif
}

// And behind `extern __shared__ T array[];` and `T* p = array + n;`.
template <class T>
inline __attribute__((always_inline)) void named_shared([[maybe_unused]] const char* name,
                                                        [[maybe_unused]] const T& pointer) {
#if ATTN_DIAG_HOST_INSTRUMENTED
  if constexpr (std::is_pointer_v<T>) shared_pointer(name, pointer);
#endif
}

}  // namespace attn_diag::host

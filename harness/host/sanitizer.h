// Tells AddressSanitizer which stack is in use; nothing without it.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define ATTN_DIAG_HOST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTN_DIAG_HOST_ASAN 1
#endif
#endif

#if defined(ATTN_DIAG_HOST_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace attn_diag::host {

// `keep`: where the stack being left keeps its state, or null if it will not be resumed.
inline void leaving_stack([[maybe_unused]] void** keep, [[maybe_unused]] std::uintptr_t to_bottom,
                          [[maybe_unused]] std::size_t to_bytes) {
#if defined(ATTN_DIAG_HOST_ASAN)
  __sanitizer_start_switch_fiber(keep, reinterpret_cast<const void*>(to_bottom), to_bytes);
#endif
}

// `kept`: state of the stack arrived on, null if it is new. Returns the bounds of the stack left.
inline void arrived_on_stack([[maybe_unused]] void* kept,
                             [[maybe_unused]] const void** from_bottom = nullptr,
                             [[maybe_unused]] std::size_t* from_bytes = nullptr) {
#if defined(ATTN_DIAG_HOST_ASAN)
  __sanitizer_finish_switch_fiber(kept, from_bottom, from_bytes);
#endif
}

// The memory holds nothing that AddressSanitizer should still know of.
inline void forget_poison([[maybe_unused]] std::uintptr_t begin,
                          [[maybe_unused]] std::size_t bytes) {
#if defined(ATTN_DIAG_HOST_ASAN)
  __asan_unpoison_memory_region(reinterpret_cast<const void*>(begin), bytes);
#endif
}

}  // namespace attn_diag::host

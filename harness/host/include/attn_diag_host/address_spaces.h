// Address spaces: whose memory a pointer is to, and 32-bit addresses of shared memory.
#pragma once

#include "attn_diag_host/shared_address.h"

inline std::size_t __cvta_generic_to_shared(const void* pointer,
                                            const char* file = __builtin_FILE(),
                                            int line = __builtin_LINE()) {
  return attn_diag::host::shared_address(pointer, file, line);
}
inline void* __cvta_shared_to_generic(std::size_t address, const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
  return attn_diag::host::shared_pointer(static_cast<std::uint32_t>(address), file, line);
}
// The other address spaces have the generic addresses.
#define ATTN_DIAG_HOST_SPACE(name)                                   \
  inline std::size_t __cvta_generic_to_##name(const void* pointer) { \
    return reinterpret_cast<std::size_t>(pointer);                   \
  }                                                                  \
  inline void* __cvta_##name##_to_generic(std::size_t address) {     \
    return reinterpret_cast<void*>(address);                         \
  }
ATTN_DIAG_HOST_SPACE(global)
ATTN_DIAG_HOST_SPACE(constant)
ATTN_DIAG_HOST_SPACE(local)
#undef ATTN_DIAG_HOST_SPACE

inline unsigned int __isShared(const void* pointer) { return attn_diag::host::is_shared(pointer); }
inline unsigned int __isLocal(const void* pointer) { return attn_diag::host::is_local(pointer); }
inline unsigned int __isGlobal(const void* pointer) {
  return pointer != nullptr && !__isShared(pointer) && !__isLocal(pointer);
}

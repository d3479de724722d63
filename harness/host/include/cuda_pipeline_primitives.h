// Stand-in for CUDA's header of this name.
#pragma once

#include "attn_diag_host/async_copy.h"
#include "cuda_runtime.h"

inline void __pipeline_memcpy_async(void* dst_shared, const void* src_global,
                                    std::size_t size_and_align, std::size_t zfill = 0,
                                    const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  attn_diag::host::async_copy(dst_shared, src_global, size_and_align, zfill, nullptr, file, line);
}
inline void __pipeline_commit() { attn_diag::host::async_commit(); }
// As CUDA's, never leaves more than 8 groups in flight.
inline void __pipeline_wait_prior(std::size_t prior) {
  attn_diag::host::async_wait(prior < 8 ? prior : 8);
}

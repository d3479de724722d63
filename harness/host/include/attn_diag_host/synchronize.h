// Barriers and fences. The defaulted arguments record the call site, so that a finding can name it.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

enum class BarrierVote : std::uint8_t { kNone, kCount, kAnd, kOr };

// All threads of the block that have not exited must arrive at the same line. Returns the vote.
int block_barrier(BarrierVote vote, int predicate, const char* file, int line);

}  // namespace attn_diag::host

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  attn_diag::host::block_barrier(attn_diag::host::BarrierVote::kNone, 0, file, line);
}
inline int __syncthreads_count(int predicate, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  return attn_diag::host::block_barrier(attn_diag::host::BarrierVote::kCount, predicate, file,
                                        line);
}
inline int __syncthreads_and(int predicate, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  return attn_diag::host::block_barrier(attn_diag::host::BarrierVote::kAnd, predicate, file, line);
}
inline int __syncthreads_or(int predicate, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  return attn_diag::host::block_barrier(attn_diag::host::BarrierVote::kOr, predicate, file, line);
}

inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

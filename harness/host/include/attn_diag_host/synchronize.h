// Barriers and fences. The defaulted arguments record the call site, so that a finding can name it.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// All threads of the block that have not exited must arrive at the same line.
void block_barrier(const char* file, int line);
// As block_barrier(); returns how many threads came with a nonzero predicate, and how many came.
struct BarrierVotes {
  int ayes, all;
};
BarrierVotes block_barrier_vote(int predicate, const char* file, int line);
// Device-wide. Not inline: compilers warn of it in an instrumented build.
void memory_fence();
void block_memory_fence();  // of the block

}  // namespace attn_diag::host

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  attn_diag::host::block_barrier(file, line);
}
inline int __syncthreads_count(int predicate, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  return attn_diag::host::block_barrier_vote(predicate, file, line).ayes;
}
inline int __syncthreads_and(int predicate, const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  const auto votes = attn_diag::host::block_barrier_vote(predicate, file, line);
  return votes.ayes == votes.all;
}
inline int __syncthreads_or(int predicate, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  return attn_diag::host::block_barrier_vote(predicate, file, line).ayes != 0;
}

inline void __threadfence_block() { attn_diag::host::block_memory_fence(); }
inline void __threadfence() { attn_diag::host::memory_fence(); }
inline void __threadfence_system() { attn_diag::host::memory_fence(); }

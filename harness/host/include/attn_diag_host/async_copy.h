// Asynchronous copies from global to shared memory (cp.async), of the thread that issues them.
//
// A copy lands at the last legal moment: at the wait that must complete it, or, bound to a barrier, when
// the phase ends that it belongs to. Until then its destination holds what it held, and at the end of the
// thread what was never waited for is dropped, which the launch's report notes. With
// AsyncCopies::kEarly copies land as they are issued. Findings: a size other than 4, 8 or 16 bytes, an
// address that is not a multiple of it, more zeros than bytes, a destination outside shared memory, a
// source in shared or in a thread's own memory.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// The last `zeros` bytes are written as 0, not read. `barrier`: that of block_barrier.h, or null.
// `around_l1`: by cp.async.cg, which copies 16 bytes.
void async_copy(void* to, const void* from, std::size_t bytes, std::size_t zeros,
                const void* barrier, const char* file, int line, bool around_l1 = false);
// Ends a group of copies: those issued since the last commit.
void async_commit();
// All groups but the last `prior` land.
void async_wait(std::size_t prior);

}  // namespace attn_diag::host

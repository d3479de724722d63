// The 16 barriers of a block that PTX names by number: bar.sync, bar.arrive. Threads are counted one by
// one, as on sm_70 and later. Barrier 0 with all threads is __syncthreads. Findings: a number above 15, a
// count that is not a multiple of 32 or more than the block has, threads that name different counts or
// arrive twice, and waits that nobody can end.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// Waits until `threads` have arrived, this one included; 0: all of the block that have not returned.
void named_barrier_sync(unsigned id, unsigned threads, const char* file, int line);
// Arrives and goes on.
void named_barrier_arrive(unsigned id, unsigned threads, const char* file, int line);

}  // namespace attn_diag::host

// What cuda::barrier of block scope asks of the executor. The barrier itself lies in shared memory.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

struct BlockBarrier {
  std::int32_t expected;  // arrivals that end a phase; -1 before initialisation, by the poison
  std::int32_t missing;   // of the current phase
  std::uint32_t phase;
};

void barrier_init(BlockBarrier* barrier, std::int32_t expected, const char* file, int line);
// Returns the phase arrived in. `drop`: one arrival less is expected from the next phase on.
std::uint32_t barrier_arrive(BlockBarrier* barrier, std::int32_t count, bool drop, const char* file,
                             int line);
// Until `phase` has ended.
void barrier_wait(const BlockBarrier* barrier, std::uint32_t phase, const char* file, int line);

}  // namespace attn_diag::host

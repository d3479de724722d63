// Work cut into numbered pieces, done by several threads. What a piece writes belongs to its number, so
// that results do not depend on how many threads there are.
#pragma once

#include <cstdint>
#include <functional>

namespace attn_diag {

// `threads` as asked for, or the number of cores for 0; at least 1.
int resolve_threads(int threads);

// Calls work(i) for each i in [0, pieces), from `threads` threads, including the caller's. Pieces are begun in
// order, and none after one has failed; the exception of the failed piece with the lowest number is rethrown.
void parallel_for(std::int64_t pieces, int threads, const std::function<void(std::int64_t)>& work);

}  // namespace attn_diag

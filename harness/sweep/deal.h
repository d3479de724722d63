// Who runs which case.
#pragma once

#include <cstdint>
#include <vector>

namespace attn_diag::sweep {

struct Shard {
  std::int64_t index = 0, count = 1;  // index from 0
  bool alone() const { return count == 1; }
};

// The shard of each case. All get as much to do, by `costs` (any unit): cases are dealt out one by one from the most
// expensive to the cheapest, forwards and backwards in turn.
std::vector<std::int32_t> deal(const std::vector<float>& costs, std::int64_t shards);

// The cases of one, the cheapest first: what fails shows early, and small.
std::vector<std::int64_t> cases_of(const Shard& shard, const std::vector<float>& costs);

}  // namespace attn_diag::sweep

#include "harness/sweep/deal.h"

#include <algorithm>
#include <numeric>

namespace attn_diag::sweep {

std::vector<std::int32_t> deal(const std::vector<float>& costs, std::int64_t shards) {
  std::vector<std::int32_t> owner(costs.size(), 0);
  if (shards <= 1) return owner;
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return costs[a] > costs[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto round = static_cast<std::int64_t>(i) / shards;
    const auto seat = static_cast<std::int64_t>(i) % shards;
    owner[order[i]] = static_cast<std::int32_t>(round % 2 == 0 ? seat : shards - 1 - seat);
  }
  return owner;
}

std::vector<std::int64_t> cases_of(const Shard& shard, const std::vector<float>& costs) {
  const std::vector<std::int32_t> owner = deal(costs, shard.count);
  std::vector<std::int64_t> mine;
  for (std::size_t i = 0; i < owner.size(); ++i)
    if (owner[i] == shard.index) mine.push_back(static_cast<std::int64_t>(i));
  std::stable_sort(mine.begin(), mine.end(), [&](std::int64_t a, std::int64_t b) {
    return costs[static_cast<std::size_t>(a)] < costs[static_cast<std::size_t>(b)];
  });
  return mine;
}

}  // namespace attn_diag::sweep

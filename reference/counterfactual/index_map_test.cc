#include "reference/counterfactual/index_map.h"

#include <algorithm>
#include <set>

#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

std::vector<std::int32_t> table(const IndexMap& map, std::int32_t n) {
  std::vector<std::int32_t> indices;
  for (std::int32_t i = 0; i < n; ++i) indices.push_back(mapped(map, i, n));
  return indices;
}

TEST_CASE(
    "index maps are all different, none is the identity, and permutations are said to be some") {
  for (const std::int32_t n : {1, 2, 7, 16, 24, 48, 64}) {
    const auto identity = table({}, n);
    std::set<std::vector<std::int32_t>> tables{identity};
    std::set<std::string> names;
    for (const auto& [map, name, permutes] : index_maps(n, n, 'd')) {
      INFO(n << ' ' << name);
      std::vector<std::int32_t> indices = table(map, n);
      CHECK(tables.insert(indices).second);
      CHECK(names.insert(name).second);
      CHECK(std::all_of(indices.begin(), indices.end(), [&](int i) { return i >= 0 && i < n; }));
      std::sort(indices.begin(), indices.end());
      CHECK((indices == identity) == permutes);
    }
  }
  CHECK(index_maps(1, 1, 'd').empty());
}

TEST_CASE("an index map that swaps runs of so many is i ^ by") {
  for (const auto& [map, name, permutes] : index_maps(32, 32, 'd')) {
    if (!swaps(map)) continue;
    for (std::int32_t i = 0; i < 32; ++i) CHECK(mapped(map, i, 32) == (i ^ map.by));
  }
}

TEST_CASE("of a few of the rows of a tile only maps are tried that they show") {
  for (const auto& [map, name, permutes] : index_maps(32, 3, 'r')) {
    INFO(name);
    bool shows = false;
    for (std::int32_t i = 0; i < 3; ++i) shows = shows || mapped(map, i, 32) != i;
    CHECK(shows);
  }
}

}  // namespace
}  // namespace attn_diag::reference

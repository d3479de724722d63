#include "harness/compare/error_maps.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "attn_diag/harness/numerics.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

constexpr Tolerance kOne = {false, 1.0, 0.0};  // every limit is 1

// Two heads, causal, tiles of 64x64; of the tensors only this one.
Capture right_capture(std::int32_t seqlen, Tensor tensor) {
  Problem p;
  p.heads = p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = seqlen;
  p.head_dim = p.head_dim_v = 64;
  p.mask.kind = MaskKind::kCausal;
  Geometry g;
  g.tile = {64, 64};
  g.num_splits = 1;
  g.tiles_per_split = (seqlen + 63) / 64;
  Capture c = testing::reference_capture(p, g, 1);
  for (std::size_t t = 0; t < kNumTensors; ++t)
    if (t != static_cast<std::size_t>(tensor)) c.tensors[t].reset();
  return c;
}

std::int64_t sum(const auto& bins) {
  return std::accumulate(bins.begin(), bins.end(), std::int64_t{0});
}

TEST_CASE(
    "a wrong cell is in its bin of the map, in the window with its values, and in the histograms") {
  Capture c = right_capture(200, Tensor::kO);
  const std::int64_t cell = ((0 * 2 + 1) * 200 + 150) * 64 + 37;  // head 1, query 150, dim 37
  TensorData& o = *c.tensors[static_cast<std::size_t>(Tensor::kO)];
  const double before = o.at(cell);
  store_element(o.bytes.data(), o.dtype, cell, before + 50);
  const Comparison comparison = compare_with_reference(c, kOne);
  const ErrorMaps maps = map_errors(c, comparison, kOne);

  REQUIRE(maps.heads == std::vector<std::array<std::int64_t, 2>>{{0, 1}});
  REQUIRE(maps.maps.size() == 1);
  const ErrorMap& map = maps.maps.front();
  CHECK(map.by_query == 2);  // 200 rows in at most 128 bins
  CHECK(map.down() == 100);
  CHECK(map.wide() == 64);
  for (std::size_t i = 0; i < map.worst.size(); ++i) {
    const bool here = i == 75 * 64 + 37;
    CHECK((map.worst[i] > 1) == here);
    if (here) CHECK(map.worst[i] == Approx(50).epsilon(0.01));
  }

  REQUIRE(maps.windows.size() == 1);
  const CellWindow& w = maps.windows.front();
  const std::size_t at = static_cast<std::size_t>((150 - w.first[2]) * w.columns + 37 - w.first[3]);
  CHECK(w.first[1] == 1);
  CHECK(w.actual.at(at) == o.at(cell));
  CHECK(w.expected.at(at) == Approx(before).margin(0.01));
  CHECK(w.limit.at(at) == 1.0);

  REQUIRE(maps.histograms.size() == 1);
  const ErrorHistogram& h = maps.histograms.front();
  CHECK(sum(h.by_limit) == 2 * 200 * 64);
  CHECK(sum(h.by_ulp) == 2 * 200 * 64);
  // 50 is above 10^1.5 and below 10^2: edge 10 of the half decades from 10^-3.
  CHECK(h.by_limit[1 + 10] == 1);
}

TEST_CASE("what is no number and what is masked have marks of their own") {
  Capture c = right_capture(64, Tensor::kS);
  TensorData& s = *c.tensors[static_cast<std::size_t>(Tensor::kS)];
  store_element(s.bytes.data(), s.dtype, 5 * 64 + 3, std::nan(""));
  const ErrorMaps maps = map_errors(c, compare_with_reference(c, kOne), kOne);
  const ErrorMap& map = maps.maps.front();
  CHECK(map.across == Axis::kKey);
  CHECK(std::isinf(map.worst.at(5 * 64 + 3)));
  CHECK(map.worst.at(5 * 64 + 6) == -1.0F);  // key 6 of query 5, causal
  CHECK(map.worst.at(6 * 64 + 5) >= 0.0F);
  CHECK(maps.histograms.front().by_limit.back() == 1);
  CHECK(maps.histograms.front().by_ulp.back() == 0);  // NaN is no number of ULPs
}

TEST_CASE("ULPs are counted as by numerics: where the bound leaves half of the digits") {
  const Capture c = right_capture(96, Tensor::kO);
  const ErrorMaps maps = map_errors(c, compare_with_reference(c, {}), {});
  const ErrorHistogram& h = maps.histograms.front();
  const TensorNumerics counted = analyse_numerics(c, {}).tensors.front();
  CHECK(h.by_ulp == counted.ulps);
  CHECK(h.storage == counted.storage);
  CHECK(sum(h.by_ulp) > 0);
  CHECK(sum(h.by_ulp) < 2 * 96 * 64);  // some sums of P.V cancel
}

TEST_CASE("a window of a tensor that has KV tiles is of the tile of its cell") {
  Capture c = right_capture(160, Tensor::kPartialO);
  TensorData& t = *c.tensors[static_cast<std::size_t>(Tensor::kPartialO)];
  const std::int64_t tiles = t.shape[3], cell = (100 * tiles + 1) * 64 + 9;
  store_element(t.bytes.data(), t.dtype, cell, 1000.0);
  const ErrorMaps maps = map_errors(c, compare_with_reference(c, kOne), kOne);
  const CellWindow& w = maps.windows.front();
  CHECK(w.first[3] == 1);
  CHECK(w.first[4] == 0);
  CHECK(w.actual.at(static_cast<std::size_t>((100 - w.first[2]) * w.columns + 9)) == 1000.0);
}

TEST_CASE("where all agrees there is a map and a window of o all the same") {
  const Capture c = right_capture(64, Tensor::kO);
  const ErrorMaps maps = map_errors(c, compare_with_reference(c, {}), {});
  CHECK(maps.maps.size() == 1);
  CHECK(maps.windows.size() == 1);
  CHECK(maps.heads.front() == std::array<std::int64_t, 2>{0, 0});
}

}  // namespace
}  // namespace attn_diag

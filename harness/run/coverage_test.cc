#include "harness/run/coverage.h"

#include <limits>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// 4 queries, 6 keys, 2x2 tiles in two splits of two tiles, causal: query tile 0 sees KV tile 0
// only, query tile 1 sees KV tiles 0 and 1.
Capture causal_capture() {
  Capture c;
  c.problem.seqlen_q = 4, c.problem.seqlen_k = 6, c.problem.head_dim_v = 2;
  c.problem.mask.kind = MaskKind::kCausal;
  c.geometry.tile = {2, 2};
  c.geometry.num_splits = 2, c.geometry.tiles_per_split = 2;
  c.geometry.skips_masked_tiles = true;
  c.region = whole(c.problem);
  return c;
}

// Every cell 7, written as often as `writes` says for (query, fourth index).
template <class Writes>
TensorData& record(Capture& c, Tensor t, const Writes& writes) {
  TensorData d;
  d.id = t;
  d.shape = tensor_shape(t, c.problem, c.geometry);
  for (std::size_t i = 0; i < 3; ++i) d.shape[i] = c.region.extent[i];
  d.origin.assign(d.shape.size(), 0);
  for (std::size_t i = 0; i < 3; ++i) d.origin[i] = c.region.origin[i];
  const auto cells = static_cast<std::size_t>(d.size());
  d.bytes.resize(cells * 4);
  d.writes.resize(cells);
  const std::size_t inner = d.shape.size() == 5 ? static_cast<std::size_t>(d.shape[4]) : 1;
  const std::size_t row = d.shape.size() > 3 ? static_cast<std::size_t>(d.shape[3]) : 1;
  for (std::size_t i = 0; i < cells; ++i) {
    store_element(d.bytes.data(), DType::kFp32, static_cast<std::int64_t>(i), 7);
    const auto query = static_cast<std::int64_t>(i / inner / row) + d.origin[2];
    d.writes[i] =
        static_cast<std::uint8_t>(writes(query, static_cast<std::int64_t>(i / inner % row)));
  }
  c.tensors[static_cast<std::size_t>(t)] = std::move(d);
  return *c.tensors[static_cast<std::size_t>(t)];
}

Coverage coverage(const Capture& c, Tensor t) { return c.coverage[static_cast<std::size_t>(t)]; }

int visited_key(std::int64_t query, std::int64_t key) { return key < (query < 2 ? 2 : 4); }
int visited_tile(std::int64_t query, std::int64_t tile) { return tile < (query < 2 ? 1 : 2); }

}  // namespace

TEST_CASE("cells written once are no fault and keep their value") {
  Capture c = causal_capture();
  TensorData& s = record(c, Tensor::kS, [](auto, auto) { return 1; });
  settle_coverage(c);
  CHECK(coverage(c, Tensor::kS).never == 0);
  CHECK(coverage(c, Tensor::kS).repeatedly == 0);
  CHECK(s.at(23) == 7);
  CHECK(s.writes.empty());
}

TEST_CASE("unvisited masked tiles get their neutral values") {
  Capture c = causal_capture();
  record(c, Tensor::kS, visited_key);
  record(c, Tensor::kP, visited_key);
  for (const Tensor t : {Tensor::kM, Tensor::kL, Tensor::kPartialO, Tensor::kRunningM,
                         Tensor::kRunningL, Tensor::kRunningO})
    record(c, t, visited_tile);
  settle_coverage(c);
  for (int t = 0; t < kNumTensors; ++t) {
    CHECK(c.coverage[static_cast<std::size_t>(t)].never == 0);
    CHECK(c.coverage[static_cast<std::size_t>(t)].repeatedly == 0);
  }
  // Query 0: KV tile 0 was visited; tile 1 follows it in its split, tile 2 begins the next split.
  CHECK(c[Tensor::kS].at(1) == 7);
  CHECK(c[Tensor::kS].at(2) == -kInf);
  CHECK(c[Tensor::kP].at(5) == 0);
  const auto tiles = [&](Tensor t, std::int64_t cell_of_tile = 1) {
    return std::vector<double>{c[t].at(0), c[t].at(cell_of_tile), c[t].at(2 * cell_of_tile)};
  };
  CHECK(tiles(Tensor::kM) == std::vector<double>{7, 7, -kInf});
  CHECK(tiles(Tensor::kL) == std::vector<double>{7, 0, 0});
  CHECK(tiles(Tensor::kPartialO, 2) == std::vector<double>{7, 0, 0});
  CHECK(tiles(Tensor::kRunningM) == std::vector<double>{7, 7, -kInf});
  CHECK(tiles(Tensor::kRunningL) == std::vector<double>{7, 7, 0});
  CHECK(tiles(Tensor::kRunningO, 2) == std::vector<double>{7, 7, 0});
}

TEST_CASE("m relative to its own tile is not carried") {
  Capture c = causal_capture();
  c.geometry.frame = Frame::kTile;
  const TensorData& m = record(c, Tensor::kM, visited_tile);
  settle_coverage(c);
  CHECK(m.at(1) == -kInf);
}

TEST_CASE("an unvisited tile that sees a key is a fault with its first coordinates") {
  Capture c = causal_capture();
  const TensorData& s = record(
      c, Tensor::kS, [](auto q, auto k) { return visited_key(q, k) && !(q >= 2 && k >= 2); });
  settle_coverage(c);
  CHECK(coverage(c, Tensor::kS).never == 4);
  REQUIRE(coverage(c, Tensor::kS).first_never);
  CHECK(coverage(c, Tensor::kS).first_never->index == std::array<std::int64_t, 5>{0, 0, 2, 2, 0});
  CHECK(s.at(2 * 6 + 2) == 7);  // left as it was
}

TEST_CASE("a kernel that does not declare skipping must write masked tiles too") {
  Capture c = causal_capture();
  c.geometry.skips_masked_tiles = false;
  record(c, Tensor::kL, visited_tile);
  settle_coverage(c);
  CHECK(coverage(c, Tensor::kL).never == 2 * 2 + 2 * 1);
}

TEST_CASE("a cell written twice is a fault with its first coordinates and count") {
  Capture c = causal_capture();
  record(c, Tensor::kPartialO, [](auto q, auto t) { return q == 3 && t == 1 ? 3 : 1; });
  settle_coverage(c);
  CHECK(coverage(c, Tensor::kPartialO).repeatedly == 2);
  REQUIRE(coverage(c, Tensor::kPartialO).first_repeated);
  CHECK(coverage(c, Tensor::kPartialO).first_repeated->index ==
        std::array<std::int64_t, 5>{0, 0, 3, 1, 0});
  CHECK(coverage(c, Tensor::kPartialO).first_repeated->writes == 3);
}

TEST_CASE("outputs and merged splits have no tile to skip") {
  Capture c = causal_capture();
  for (const Tensor t : {Tensor::kO, Tensor::kLse, Tensor::kMergedL, Tensor::kMergedO}) {
    record(c, t, [](auto q, auto) { return q != 0; });
    settle_coverage(c);
    CHECK(coverage(c, t).never > 0);
  }
}

TEST_CASE("coordinates and masks of a region are absolute") {
  Capture c = causal_capture();
  c.region = {{0, 0, 1}, {1, 1, 2}};  // queries 1 and 2: query tiles 0 and 1
  const TensorData& l = record(c, Tensor::kL, [](auto, auto t) { return t == 0; });
  settle_coverage(c);
  // Query 1 may skip tile 1, query 2 may not; both may skip tile 2.
  CHECK(coverage(c, Tensor::kL).never == 1);
  REQUIRE(coverage(c, Tensor::kL).first_never);
  CHECK(coverage(c, Tensor::kL).first_never->index == std::array<std::int64_t, 5>{0, 0, 2, 1, 0});
  CHECK(l.at(1) == 0);
  CHECK(l.at(4) == 7);
}

}  // namespace attn_diag

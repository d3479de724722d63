#include "harness/capture/oracle.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/capture/reference_rows.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

constexpr std::uint32_t kOutputs = tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse);

Capture case_with_oracle() {
  Problem p;
  p.batch = p.heads = p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 24;
  p.head_dim = p.head_dim_v = 8;
  p.mask.kind = MaskKind::kCausal;
  p.softmax_scale = 0.25f;
  Geometry g;
  g.tile = {16, 16};
  g.tiles_per_split = 2;
  Capture c = testing::reference_capture(p, g, 1);
  c.oracle = std::make_shared<Oracle>();
  return c;
}

reference::Options outputs_of_all(const Capture& c) {
  reference::Options options = reference_options(c, 1, true);
  options.tensors = kOutputs;
  return options;
}

// Rows that the reference computed for it.
std::int64_t rows_of(const Capture& c, const reference::Options& options) {
  const std::int64_t before = reference::rows_computed();
  for_each_row_block(c, options, [](const reference::RowBlock&) {});
  return reference::rows_computed() - before;
}

constexpr std::int64_t kAllRows = 2 * 2 * 24;

}  // namespace

TEST_CASE("o and lse of a case are computed once, whoever asks, and all else every time") {
  const Capture c = case_with_oracle();
  const reference::Options all = reference_options(c, 1, true), outputs = outputs_of_all(c);
  CHECK(rows_of(c, all) == kAllRows);
  CHECK(rows_of(c, outputs) == 0);
  const Capture copy = c;  // of another run of the case
  CHECK(rows_of(copy, outputs) == 0);
  CHECK(rows_of(c, all) == kAllRows);  // S is not kept

  reference::Options isolated = outputs;
  isolated.mode = reference::BoundMode::kIsolate;
  CHECK(rows_of(c, isolated) == kAllRows);  // its bounds are others

  Capture alone = c;
  alone.oracle = nullptr;
  CHECK(rows_of(alone, outputs) == kAllRows);
}

TEST_CASE("what is kept of one case is no answer for another") {
  const Capture c = case_with_oracle();
  const reference::Options outputs = outputs_of_all(c);
  REQUIRE(rows_of(c, outputs) == kAllRows);
  Capture other = c;
  other.problem.softmax_scale = 0.5f;
  CHECK(rows_of(other, outputs) == kAllRows);
  other = c;
  other.arithmetic.output = DType::kBf16;
  CHECK(rows_of(other, outputs) == kAllRows);
  other = c;
  other.geometry.tile.block_n = 8;
  other.geometry.tiles_per_split = 3;
  CHECK(rows_of(other, outputs) == kAllRows);
  other = c;
  other.v.edit()[0] ^= std::byte{1};
  CHECK(c.v[0] != other.v[0]);
  CHECK(rows_of(other, outputs) == kAllRows);
  CHECK(rows_of(c, outputs) == 0);
}

TEST_CASE("kept values and bounds are those of the reference, of every part of the region") {
  Capture c = case_with_oracle();
  c.region = {{1, 0, 3}, {1, 2, 20}};
  const reference::Options outputs = reference_options(c, 1, true);
  for_each_row_block(c, outputs, [](const reference::RowBlock&) {});
  reference::Options part = outputs_of_all(c);
  part.head_begin = 1;
  part.query_begin = 7;
  part.query_end = 12;
  const reference::Tensors expected = reference::compute(
      c.problem, c.geometry, c.arithmetic, {c.q.data(), c.k.data(), c.v.data()}, part);
  int blocks = 0;
  const std::int64_t before = reference::rows_computed();
  for_each_row_block(c, part, [&](const reference::RowBlock& block) {
    ++blocks;
    CHECK(block.batch == 1);
    CHECK(block.head == 1);
    CHECK(block.query_begin == 7);
    REQUIRE(block.rows == 5);
    for (const Tensor t : {Tensor::kO, Tensor::kLse}) {
      const auto at = static_cast<std::size_t>(t);
      const std::vector<double>&value = expected.value[at], &bound = expected.bound[at];
      CHECK(std::vector<double>(block.value[at], block.value[at] + value.size()) == value);
      CHECK(std::vector<double>(block.bound[at], block.bound[at] + bound.size()) == bound);
    }
    CHECK(block.value[static_cast<std::size_t>(Tensor::kS)] == nullptr);
  });
  CHECK(blocks == 1);
  CHECK(reference::rows_computed() == before);

  part.query_begin = 2;  // outside of the region
  CHECK(rows_of(c, part) == 10);
}

}  // namespace attn_diag

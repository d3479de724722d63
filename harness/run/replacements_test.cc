#include "harness/run/replacements.h"

#include <cstring>

#include "harness/compare/compare_and_visit.h"
#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

Capture some_capture() {
  Problem p;
  p.batch = 2;
  p.heads = p.kv_heads = 2;
  p.seqlen_q = 37;
  p.seqlen_k = 70;
  p.head_dim = p.head_dim_v = 24;
  p.mask.kind = MaskKind::kCausal;
  p.mask.alignment = CausalAlignment::kBottomRight;
  p.softmax_scale = 0.2f;
  Geometry g;
  g.tile = {16, 16};
  g.tiles_per_split = num_kv_tiles(p, g);
  return testing::reference_capture(p, g, 7);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE(
    "what is fed to stages is the same from a comparison's pass of the reference as from its own") {
  const Capture capture = some_capture();
  Replacements shared(capture, kStageInputs);
  CHECK_FALSE(shared.complete());
  const Comparison comparison = compare_and_visit(
      capture, {}, 2,
      {.every = [&](const reference::RowBlock& b) { shared.take(b); }, .wrong = {}});
  CHECK(comparison.agrees());
  CHECK(shared.complete());
  const auto own = make_replacements(capture, kStageInputs, 1);
  CHECK(own->complete());
  for (const TensorInfo& t : kTensors) {
    INFO(t.name);
    const bool fed = (kStageInputs & tensor_bit(t.id)) != 0;
    CHECK(shared[t.id].empty() == !fed);
    if (fed) CHECK(same_bits(shared[t.id], (*own)[t.id]));
  }
}

TEST_CASE("replacements of a capture without one of the tensors are not complete") {
  Capture capture = some_capture();
  capture.tensors[static_cast<std::size_t>(Tensor::kP)].reset();
  Replacements shared(capture, kStageInputs);
  compare_and_visit(capture, {}, 1,
                    {.every = [&](const reference::RowBlock& b) { shared.take(b); }, .wrong = {}});
  CHECK_FALSE(shared.complete());
}

}  // namespace attn_diag

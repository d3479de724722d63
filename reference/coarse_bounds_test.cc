#include "attn_diag/reference/coarse_bounds.h"

#include <cmath>
#include <random>

#include "reference/testing/catch2_test.h"
#include "reference/testing/random_case.h"
#include "reference/testing/simulate.h"

namespace attn_diag::reference {
namespace {

TEST_CASE("coarse bounds are never below the reference's") {
  std::mt19937_64 random(17);
  std::int64_t rows = 0, finite = 0;
  for (int i = 0; i < 400; ++i) {
    testing::Case c = testing::random_case(random, 60, false);
    Arithmetic a = testing::random_declared(random).arithmetic;
    if (i % 3 == 0) a.dot_ulp = 2.5;
    INFO(c.describe());
    const auto fine = compute(c.problem, c.geometry, a, c.inputs(), Options{});
    const CoarseBounds coarse = coarse_bounds(c.problem, c.geometry, a, c.inputs());
    const auto& o = fine.bound[static_cast<std::size_t>(Tensor::kO)];
    const auto& lse = fine.bound[static_cast<std::size_t>(Tensor::kLse)];
    const auto dims = static_cast<std::size_t>(c.problem.head_dim_v);
    REQUIRE(coarse.o.size() == lse.size());
    for (std::size_t row = 0; row < lse.size(); ++row) {
      ++rows;
      REQUIRE(coarse.lse[row] >= lse[row] * (1 - 1e-6));
      for (std::size_t d = 0; d < dims; ++d)
        REQUIRE(coarse.o[row] >= o[row * dims + d] * (1 - 1e-6));
      finite += coarse.o[row] < INFINITY;
    }
  }
  REQUIRE(finite > rows / 2);
}

TEST_CASE("coarse bounds say something useful of a usual case") {
  std::mt19937_64 random(18);
  testing::Case c;
  Problem& p = c.problem;
  p.heads = p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 128;
  p.head_dim = p.head_dim_v = 64;
  p.softmax_scale = 0.125f;
  testing::fill_inputs(random, c);
  Arithmetic a;
  a.output = DType::kFp32;
  const CoarseBounds bounds = coarse_bounds(p, c.geometry, a, c.inputs());
  REQUIRE(bounds.scores_finite);
  for (const double o : bounds.o) REQUIRE(o < 5e-3);
  for (const double lse : bounds.lse) REQUIRE(lse < 1e-3);
}

TEST_CASE("o of a row of 131,072 keys is held against their v") {
  Problem p;
  p.seqlen_q = p.seqlen_k = 131072;
  p.head_dim = p.head_dim_v = 64;
  p.softmax_scale = 0.125f;
  Geometry g;
  g.tile = {64, 64};
  g.tiles_per_split = p.seqlen_k / g.tile.block_n;
  Arithmetic a;
  a.probs = DType::kFp16;
  REQUIRE(ConsistencyLimits(p, g, a).outside_of_v(p.seqlen_k, 12, 4.5) < 0.5);
}

TEST_CASE("nothing is said of a row whose scores may overflow or are NaN") {
  Problem p;
  p.dtype = DType::kFp32;
  const float q = 1e30f, nan = NAN, one = 1;
  REQUIRE_FALSE(coarse_bounds(p, Geometry{}, Arithmetic{}, {&q, &q, &one}).scores_finite);
  REQUIRE_FALSE(coarse_bounds(p, Geometry{}, Arithmetic{}, {&one, &nan, &one}).scores_finite);
  const CoarseBounds v = coarse_bounds(p, Geometry{}, Arithmetic{}, {&one, &one, &nan});
  REQUIRE(v.scores_finite);
  REQUIRE(std::isinf(v.o[0]));
  REQUIRE(v.lse[0] < 1e-5);
}

}  // namespace
}  // namespace attn_diag::reference

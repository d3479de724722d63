#include "attn_diag/reference/twin.h"

#include <cmath>
#include <random>

#include "reference/counterfactual/testing/rows.h"
#include "reference/testing/catch2_test.h"
#include "reference/testing/float_types.h"
#include "reference/testing/hand_case.h"
#include "reference/testing/random_case.h"
#include "reference/testing/simulate.h"

namespace attn_diag::reference {
namespace {

using testing::all_rows;

// Two keys with scores ln 2 and 0, values 1 and 4: P = (1, 1/2), l = 3/2, o = (1 + 2) / (3/2) = 2.
struct TwoKeys {
  Problem problem;
  Geometry geometry;
  Arithmetic arithmetic;
  std::vector<std::byte> q, k, v;

  explicit TwoKeys(double score, double v0 = 1, double v1 = 4) {
    problem.seqlen_k = 2;
    problem.dtype = DType::kFp32;
    geometry.tile = {1, 2};
    arithmetic.output = DType::kFp32;
    q.resize(4), k.resize(8), v.resize(8);
    testing::store(DType::kFp32, 1, q.data());
    testing::store(DType::kFp32, score, k.data());
    testing::store(DType::kFp32, 0, k.data() + 4);
    testing::store(DType::kFp32, v0, v.data());
    testing::store(DType::kFp32, v1, v.data() + 4);
  }
  double o(std::uint32_t roundings) const {
    const RowIndex row;
    return twin_o(problem, geometry, arithmetic, {q.data(), k.data(), v.data()}, {&row, 1},
                  roundings)[0];
  }
};

TEST_CASE("the twin without roundings is the reference") {
  std::mt19937_64 random(15);
  for (int i = 0; i < 60; ++i) {
    const testing::Case c = testing::random_case(random, 40, true);
    INFO(c.describe());
    const auto expected = compute(c.problem, c.geometry, Arithmetic{}, c.inputs(), Options{});
    const auto& o = expected.value[static_cast<std::size_t>(Tensor::kO)];
    const auto twin =
        twin_o(c.problem, c.geometry, Arithmetic{}, c.inputs(), all_rows(c.problem), 0);
    REQUIRE(twin.size() == o.size());
    for (std::size_t at = 0; at < o.size(); ++at) {
      if (!std::isfinite(o[at])) continue;
      REQUIRE(std::fabs(twin[at] - o[at]) <=
              1e-10 * (1 + std::fabs(o[at])) * c.input_scale + 1e-12);
    }
  }
}

TEST_CASE("the twin with any roundings stays within the bounds of the declared arithmetic") {
  std::mt19937_64 random(16);
  std::int64_t judged = 0, moved = 0;
  for (int i = 0; i < 200; ++i) {
    const testing::Case c = testing::random_case(random, 40, false);
    Arithmetic a = testing::random_declared(random).arithmetic;
    if (i % 2 == 0) a.dot_ulp = 2.5, a.accumulate = DType::kFp32;
    a.exp_ulp += 2, a.exp_ulp_per_x += 1.2;
    INFO(c.describe());
    const auto expected = compute(c.problem, c.geometry, a, c.inputs(), Options{});
    const auto& o = expected.value[static_cast<std::size_t>(Tensor::kO)];
    const auto& bound = expected.bound[static_cast<std::size_t>(Tensor::kO)];
    const std::uint32_t some = i % 3 == 0 ? kAllRounded : random() & kAllRounded;
    const auto twin = twin_o(c.problem, c.geometry, a, c.inputs(), all_rows(c.problem), some);
    for (std::size_t at = 0; at < o.size(); ++at) {
      if (!(bound[at] < INFINITY)) continue;
      ++judged;
      moved += twin[at] != o[at];
      REQUIRE(std::fabs(twin[at] - o[at]) <= bound[at]);
    }
  }
  REQUIRE(judged > 10000);
  REQUIRE(moved > judged / 2);
}

TEST_CASE("of more splits than tiles the bound holds for splits of a tile's keys") {
  std::mt19937_64 random(17);
  double worst = 0;
  for (int i = 0; i < 100; ++i) {
    testing::Case c = testing::random_case(random, 40, false);
    Arithmetic a;
    a.partial = DType::kFp16;
    a.output = DType::kFp32;
    // A split has `keys` keys; what is declared is one tile of all of them.
    const std::int32_t keys = 1 + static_cast<std::int32_t>(random() % 5);
    Geometry fine = c.geometry;
    fine.has_split_merge = true;
    fine.num_splits = ceil_div(c.problem.seqlen_k, keys);
    fine.tiles_per_split = 1;
    fine.tile.block_n = keys;
    Geometry declared = fine;
    declared.tile.block_n = c.problem.seqlen_k;
    if (fine.num_splits < 2) continue;
    INFO(c.describe());
    const auto expected = compute(c.problem, declared, a, c.inputs(), Options{});
    const auto& o = expected.value[static_cast<std::size_t>(Tensor::kO)];
    const auto& bound = expected.bound[static_cast<std::size_t>(Tensor::kO)];
    const auto twin = twin_o(c.problem, fine, a, c.inputs(), all_rows(c.problem), kAllRounded);
    for (std::size_t at = 0; at < o.size(); ++at) {
      if (!(bound[at] < INFINITY) || bound[at] == 0) continue;
      REQUIRE(std::fabs(twin[at] - o[at]) <= bound[at]);
      worst = std::max(worst, std::fabs(twin[at] - o[at]) / bound[at]);
    }
  }
  CHECK(worst > 0.2);
}

TEST_CASE("each rounding alone does what it says, by hand") {
  // P = (1, e^-1), V = (1, 4): o = (1 + 4 e^-1) / (1 + e^-1).
  TwoKeys c(1);
  const double e = std::exp(-1.0);
  REQUIRE(c.o(0) == Approx((1 + 4 * e) / (1 + e)).epsilon(1e-15));
  c.arithmetic.probs = DType::kFp16;
  const double p = testing::round_to(DType::kFp16, e);
  REQUIRE(c.o(rounded_bit(Rounded::kProbs)) == Approx((1 + 4 * p) / (1 + e)).epsilon(1e-15));
  c.arithmetic.l_from_rounded_probs = true;
  REQUIRE(c.o(rounded_bit(Rounded::kProbs)) == Approx((1 + 4 * p) / (1 + p)).epsilon(1e-15));
  REQUIRE(c.o(rounded_bit(Rounded::kOutput)) == static_cast<float>(c.o(0)));
  c.arithmetic.output = DType::kFp16;
  REQUIRE(c.o(rounded_bit(Rounded::kOutput)) == testing::round_to(DType::kFp16, c.o(0)));
  // 1/3 as a score, in fp16.
  TwoKeys third(1.0 / 3);
  third.arithmetic.scores = DType::kFp16;
  const double s = testing::round_to(DType::kFp16, static_cast<float>(1.0 / 3)), w = std::exp(-s);
  REQUIRE(third.o(rounded_bit(Rounded::kScores)) == Approx((1 + 4 * w) / (1 + w)).epsilon(1e-15));
}

TEST_CASE("sums are rounded at every key, or truncated at the end of a tensor core's block") {
  // V = (1, 2^-24): the sum 1 + e^-0 2^-24 is a tie in fp32 and rounds to 1; 2^-24 + 2^-24 more would not be lost.
  TwoKeys c(0, 1, 0x1.8p-24);  // 1 + 1.5 * 2^-24 lies nearest to 1 + 2^-23, and is cut to 1
  REQUIRE(c.o(0) == (1 + 0x1.8p-24) / 2);
  REQUIRE(c.o(rounded_bit(Rounded::kPvSums)) == (1 + 0x1p-23) / 2);
  c.arithmetic.dot_ulp = 2.5;
  REQUIRE(c.o(rounded_bit(Rounded::kPvSums)) == 0.5);
}

TEST_CASE("roundings that are not declared have no description") {
  Arithmetic a;
  Geometry g;
  REQUIRE(describe(Rounded::kProbs, a, g).empty());
  REQUIRE(describe(Rounded::kScaledQ, a, g).empty());
  REQUIRE(describe(Rounded::kPartials, a, g).empty());
  REQUIRE(describe(Rounded::kOutput, a, g) == "o rounded to fp16");
  a.probs = a.partial = DType::kFp16;
  REQUIRE(describe(Rounded::kProbs, a, g) == "P rounded to fp16");
  REQUIRE(describe(Rounded::kPartials, a, g).empty());  // no split
  g.has_split_merge = true;
  REQUIRE(describe(Rounded::kPartials, a, g) == "accumulators of splits rounded to fp16");
}

}  // namespace
}  // namespace attn_diag::reference

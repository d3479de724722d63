// predict() of the right formula against the oracle.
#include <cmath>
#include <random>

#include "attn_diag/reference/counterfactual.h"
#include "reference/testing/catch2_test.h"
#include "reference/testing/random_case.h"

namespace attn_diag::reference {
namespace {

constexpr std::uint32_t kAllTensors = (1u << kNumTensors) - 1;

std::vector<Row> all_rows(const Problem& p) {
  std::vector<Row> rows;
  for (std::int32_t b = 0; b < p.batch; ++b)
    for (std::int32_t h = 0; h < p.heads; ++h)
      for (std::int32_t i = 0; i < p.seqlen_q; ++i) rows.push_back({b, h, i});
  return rows;
}

TEST_CASE("without a deviation every tensor is the oracle's, bound and all") {
  std::mt19937_64 random(20250511);
  Prediction prediction;
  double least = 1e9, most = 0;
  for (int n = 0; n < 150; ++n) {
    const testing::Case random_case = testing::random_case(random, 40, true);
    INFO(random_case.describe());
    const Case c(random_case.problem, random_case.geometry, {}, random_case.inputs());
    const Tensors right = compute(random_case.problem, random_case.geometry, {},
                                  random_case.inputs(), {.threads = 1});
    predict(c, all_rows(c.problem()), {}, kAllTensors, prediction);
    for (const TensorInfo& t : kTensors) {
      INFO(t.name);
      const Prediction::Values& mine = prediction[t.id];
      const auto& theirs = right.value[static_cast<std::size_t>(t.id)];
      const auto& bounds = right.bound[static_cast<std::size_t>(t.id)];
      REQUIRE(mine.value.size() == theirs.size());
      // Exponents are differences of scores: their size bounds what fp64 itself may lose.
      double size = 1;
      for (const double s : right.value[0])
        if (std::isfinite(s)) size = std::max(size, std::fabs(s));
      double largest = 1;
      for (const double x : theirs)
        if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        const double expected = theirs[i];
        INFO("cell " << i << ": " << mine.value[i] << " for " << expected);
        REQUIRE(mine.known[i] == 1);
        const bool same = std::isfinite(expected)
                              ? std::fabs(mine.value[i] - expected) <= 1e-14 * size * largest
                              : mine.value[i] == expected;
        REQUIRE(same);
        REQUIRE(mine.bound[i] >= 0);
        if (std::isfinite(bounds[i]) && bounds[i] > 0 && t.id == Tensor::kO) {
          least = std::min(least, mine.bound[i] / bounds[i]);
          most = std::max(most, mine.bound[i] / bounds[i]);
        }
      }
    }
  }
  INFO("bound / oracle's bound: " << least << " to " << most);
  CHECK(least > 0.9);
  CHECK(most < 12);
}

}  // namespace
}  // namespace attn_diag::reference

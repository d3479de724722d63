// predict() of the right formula against the oracle.
#include <array>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

#include "attn_diag/reference/counterfactual.h"
#include "reference/counterfactual/testing/rows.h"
#include "reference/testing/catch2_test.h"
#include "reference/testing/random_case.h"

namespace attn_diag::reference {
namespace {

using testing::all_rows;
using testing::kAllTensors;

TEST_CASE("without a deviation every tensor is the oracle's, bound and all") {
  std::mt19937_64 random(20250511);
  Prediction prediction;
  double least = 1e9, most = 0;
  for (int n = 0; n < 150; ++n) {
    const testing::Case random_case = testing::random_case(random, 40, true);
    INFO(random_case.describe());
    const PredictionInputs c(random_case.problem, random_case.geometry, {}, random_case.inputs());
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

TEST_CASE("bounds are at least the oracle's, whatever is declared") {
  std::mt19937_64 random(99);
  Prediction prediction;
  std::array<double, kNumTensors> least;
  least.fill(1e9);
  for (int n = 0; n < 60; ++n) {
    testing::Case random_case = testing::random_case(random, 40, false);
    random_case.input_scale = 2;
    fill_inputs(random, random_case);
    Arithmetic arithmetic;
    arithmetic.probs = n % 2 == 0 ? DType::kFp16 : DType::kBf16;
    arithmetic.l_from_rounded_probs = n % 3 == 0;
    arithmetic.dot_ulp = 2.5;
    arithmetic.output = DType::kFp32;
    if (n % 5 == 0) arithmetic.partial = DType::kFp16;
    INFO(random_case.describe());
    const PredictionInputs c(random_case.problem, random_case.geometry, arithmetic,
                             random_case.inputs());
    const Tensors right = compute(random_case.problem, random_case.geometry, arithmetic,
                                  random_case.inputs(), {.threads = 1});
    predict(c, all_rows(c.problem()), {}, kAllTensors, prediction);
    for (std::size_t t = 0; t < kNumTensors; ++t)
      for (std::size_t i = 0; i < right.bound[t].size(); ++i) {
        const double theirs = right.bound[t][i], mine = prediction.tensor[t].bound[i];
        if (std::isfinite(theirs) && theirs > 1e-30) least[t] = std::min(least[t], mine / theirs);
      }
  }
  for (const TensorInfo& t : kTensors) {
    INFO(t.name);
    CHECK(least[static_cast<std::size_t>(t.id)] > 0.9);
  }
}

// A stage tensor of the oracle, changed, as if a kernel had recorded it.
GivenTensor recorded(Tensor t, const std::vector<double>& values, double factor) {
  GivenTensor given{t, {}};
  for (const double x : values) given.values.push_back(static_cast<float>(factor * x));
  return given;
}

TEST_CASE("stage tensors that are given are where predictions start, in either frame") {
  std::mt19937_64 random(5);
  for (int n = 0; n < 40; ++n) {
    testing::Case random_case = testing::random_case(random, 30, false);
    random_case.input_scale = 1;
    fill_inputs(random, random_case);
    INFO(random_case.describe());
    const Problem& p = random_case.problem;
    const Geometry& g = random_case.geometry;
    const Tensors right = compute(p, g, {}, random_case.inputs(), {.threads = 1});
    const auto of = [&](Tensor t) { return right.value[static_cast<std::size_t>(t)]; };
    const std::vector<RowIndex> rows = all_rows(p);
    const auto predicted = [&](std::vector<GivenTensor> given, const Deviation& deviation) {
      Prediction out;
      predict(PredictionInputs(p, g, {}, random_case.inputs(), {}, std::move(given)), rows,
              deviation, kAllTensors, out);
      return out;
    };
    const auto same = [&](const std::vector<double>& a, const std::vector<double>& b,
                          double factor) {
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i)
        REQUIRE((a[i] == b[i] ||
                 std::fabs(a[i] - factor * b[i]) <= 1e-4 * (1 + std::fabs(factor * b[i]))));
    };
    // S of twice the size is what a temperature of 2 makes of it.
    Deviation doubled;
    doubled.logits.kappa = 2;
    const Prediction from_s = predicted({recorded(Tensor::kS, of(Tensor::kS), 2)}, {});
    const Prediction hot = predicted({}, doubled);
    for (const Tensor t : {Tensor::kM, Tensor::kL, Tensor::kPartialO, Tensor::kLse, Tensor::kO})
      same(from_s[t].value, hot[t].value, 1);
    // Three times P are three times P V, and l is not asked.
    const Prediction from_p = predicted(
        {recorded(Tensor::kS, of(Tensor::kS), 1), recorded(Tensor::kP, of(Tensor::kP), 3)}, {});
    same(from_p[Tensor::kPartialO].value, of(Tensor::kPartialO), 3);
    same(from_p[Tensor::kO].value, of(Tensor::kO), 3);
    same(from_p[Tensor::kLse].value, of(Tensor::kLse), 1);
    // Half of l, five times P V: o is ten times as large.
    const Prediction from_sums = predicted(
        {recorded(Tensor::kM, of(Tensor::kM), 1), recorded(Tensor::kL, of(Tensor::kL), 0.5),
         recorded(Tensor::kPartialO, of(Tensor::kPartialO), 5)},
        {});
    same(from_sums[Tensor::kO].value, of(Tensor::kO), 10);
    same(from_sums[Tensor::kRunningL].value, of(Tensor::kRunningL), 0.5);
  }
}

TEST_CASE("what does not fit together is refused in words") {
  std::mt19937_64 random(5);
  const testing::Case c = testing::random_case(random, 30, false);
  const auto message = [&](std::vector<GivenTensor> given) -> std::string {
    try {
      const PredictionInputs data(c.problem, c.geometry, {}, c.inputs(), {}, std::move(given));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "none";
  };
  CHECK(message({}) == "none");
  CHECK(message({{Tensor::kS, {1, 2}}}).find("S must have") != std::string::npos);
  CHECK(message({{Tensor::kO, {}}}).find("only inputs of stages") != std::string::npos);
}

TEST_CASE("another cut of the same data is another geometry, and what was given is dropped") {
  std::mt19937_64 random(6);
  testing::Case c = testing::random_case(random, 30, false);
  const Geometry other{{5, 7}, 1, ceil_div(c.problem.seqlen_k, 7), Frame::kTile, false, false};
  const std::vector<RowIndex> rows = all_rows(c.problem);
  const PredictionInputs cut(c.problem, c.geometry, {}, c.inputs());
  Prediction a, b;
  predict(cut.with_geometry(other), rows, {}, kAllTensors, a);
  predict(PredictionInputs(c.problem, other, {}, c.inputs()), rows, {}, kAllTensors, b);
  for (const TensorInfo& t : kTensors) CHECK(a[t.id].value == b[t.id].value);
  CHECK_THROWS_AS(cut.with_geometry({{0, 1}, 1, 1, Frame::kTile, false, false}),
                  std::invalid_argument);
}

}  // namespace
}  // namespace attn_diag::reference

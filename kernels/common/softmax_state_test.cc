#include "common/softmax_state.h"

#include <cmath>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

TEST_CASE("a row without a visible key has lse -inf, o 0 and factors 0, never NaN") {
  SoftmaxState state;
  CHECK(state.merge({-INFINITY, 0.0f}) == 0.0f);
  CHECK(state.l == 0.0f);
  CHECK(state.lse() == -INFINITY);
  CHECK(state.normalise(0.0f) == 0.0f);
  CHECK(rescale_factor(-INFINITY, -INFINITY) == 0.0f);
  CHECK(exponent_origin(-INFINITY) == 0.0f);
}

TEST_CASE("a first tile is taken as it is") {
  SoftmaxState state;
  CHECK(state.merge({3.0f, 2.0f}) == 0.0f);
  CHECK(state.m == 3.0f);
  CHECK(state.l == 2.0f);
}

TEST_CASE("merged tiles add up to the sum over all of them") {
  // Scores 1; 3, 2; then a masked tile; then 0.
  SoftmaxState state;
  state.merge({1.0f, 1.0f});
  const float alpha = state.merge({3.0f, 1.0f + std::exp(-1.0f)});
  CHECK(std::abs(alpha - std::exp(-2.0f)) < 1e-6f);
  CHECK(state.merge({3.0f, 0.0f}) == 1.0f);
  state.merge({3.0f, std::exp(-3.0f)});
  const double sum = std::exp(1.0) + std::exp(3.0) + std::exp(2.0) + std::exp(0.0);
  CHECK(std::abs(state.lse() - std::log(sum)) < 1e-6);
  CHECK(std::abs(state.normalise(1.0f) - std::exp(3.0) / sum) < 1e-6);
}

TEST_CASE("a sum relative to a smaller maximum counts by its weight") {
  SoftmaxState merged{3.0f, 2.0f};
  merged.add(rescale_factor(1.0f, merged.m), 4.0f);
  CHECK(merged.m == 3.0f);
  CHECK(std::abs(merged.l - (2.0 + 4.0 * std::exp(-2.0))) < 1e-6);
}

TEST_CASE("NaN stays NaN") {
  SoftmaxState state;
  state.merge({1.0f, NAN});
  CHECK(std::isnan(state.l));
  CHECK(std::isnan(state.lse()));
  CHECK(std::isnan(state.normalise(1.0f)));
}

}  // namespace
}  // namespace attn_diag

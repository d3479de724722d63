#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <utility>

#include "attn_diag/reference/reference.h"
#include "reference/testing/catch2_test.h"
#include "reference/testing/float_types.h"
#include "reference/testing/random_case.h"
#include "reference/testing/simulate.h"

namespace attn_diag::reference {
namespace {

using testing::Case;
using testing::TensorValues;

constexpr double kInf = std::numeric_limits<double>::infinity();

// Largest err/bound over a tensor; infinite where a value can never pass. Cells without a finite
// bound say nothing and are counted apart.
struct Score {
  double worst = 0;
  std::size_t cells = 0, unbounded = 0;
};
Score score(const std::vector<double>& got, const std::vector<double>& value,
            const std::vector<double>& bound) {
  Score s;
  REQUIRE(got.size() == value.size());
  REQUIRE(bound.size() == value.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ++s.cells;
    if (bound[i] == kInf) {
      ++s.unbounded;
      continue;
    }
    REQUIRE(bound[i] >= 0);
    if (got[i] == value[i]) continue;
    const double err = std::fabs(got[i] - value[i]);
    s.worst = std::max(s.worst, err <= bound[i]                 ? err / bound[i]
                                : std::isfinite(err / bound[i]) ? err / bound[i]
                                                                : kInf);
  }
  return s;
}

Options options_for(BoundMode mode) {
  Options options;
  options.threads = 1;
  options.mode = mode;
  return options;
}

double median(std::vector<double> x) {
  REQUIRE(!x.empty());
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

std::string describe(const Arithmetic& a) {
  return "accumulate=" + std::to_string(static_cast<int>(a.accumulate)) +
         " scores=" + std::to_string(static_cast<int>(a.scores)) +
         " partial_stats=" + std::to_string(static_cast<int>(a.partial_stats)) +
         " probs=" + std::to_string(static_cast<int>(a.probs)) +
         " l_from_rounded=" + std::to_string(a.l_from_rounded_probs) +
         " partial=" + std::to_string(static_cast<int>(a.partial)) +
         " output=" + std::to_string(static_cast<int>(a.output)) +
         " scaled_q=" + std::to_string(static_cast<int>(a.scaled_q)) +
         " scale_q=" + std::to_string(a.scale_applied_to_q);
}

void prove(BoundMode mode, std::uint64_t seed, int cases) {
  std::mt19937_64 random(seed);
  std::array<std::vector<double>, kNumTensors> ratios;
  std::array<Score, kNumTensors> total;
  for (int i = 0; i < cases; ++i) {
    const Case c = testing::random_case(random, i % 20 == 0 ? 70 : 16, false);
    const auto [arithmetic, style] = testing::random_declared(random);
    const Tensors want = compute(c.problem, c.geometry, arithmetic, c.inputs(), options_for(mode));
    const TensorValues got =
        simulate(c, arithmetic, style, mode == BoundMode::kIsolate ? &want.value : nullptr);
    for (const TensorInfo& t : kTensors) {
      const auto at = static_cast<std::size_t>(t.id);
      if (want.value[at].empty()) continue;
      const Score s = score(got[at], want.value[at], want.bound[at]);
      INFO("case " << i << ", " << t.name << ": " << c.describe() << " " << describe(arithmetic)
                   << " " << style.describe());
      CHECK(s.worst <= 1.0);
      total[at].cells += s.cells;
      total[at].unbounded += s.unbounded;
      // A row of one key has nothing to round in m, P, l: leave out tensors without any rounding.
      if (s.worst > 0) ratios[at].push_back(s.worst);
    }
  }
  for (const TensorInfo& t : kTensors) {
    const auto at = static_cast<std::size_t>(t.id);
    const double middle = median(ratios[at]);
    std::printf(
        "%-10s median of max(err/bound) %.3f, largest %.3f, over %zu cases; %.2f %% unbounded\n",
        std::string(t.name).c_str(), middle,
        *std::max_element(ratios[at].begin(), ratios[at].end()), ratios[at].size(),
        100.0 * static_cast<double>(total[at].unbounded) / static_cast<double>(total[at].cells));
    INFO(t.name);
    CHECK(middle > 0.02);
    CHECK(static_cast<double>(total[at].unbounded) < 0.05 * static_cast<double>(total[at].cells));
  }
}

TEST_CASE("no simulated kernel exceeds the prefix bounds, and they are not loose") {
  prove(BoundMode::kPrefix, 1, 1000);
}

TEST_CASE("values and bounds have the same bits on every run, wherever their memory lies") {
  std::mt19937_64 random(8);
  std::vector<std::vector<char>> elsewhere;
  for (int i = 0; i < 20; ++i) {
    const Case c = testing::random_case(random, 60, true);
    Options options;
    options.threads = 1 + i % 3;
    const Tensors once = compute(c.problem, c.geometry, Arithmetic{}, c.inputs(), options);
    for (std::size_t again = 0; again < 4; ++again) {
      elsewhere.emplace_back(24 + 16 * again);  // shifts what is allocated next
      const Tensors twice = compute(c.problem, c.geometry, Arithmetic{}, c.inputs(), options);
      const auto same_bits = [](double x, double y) {
        return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
      };
      const auto same = [&](const auto& a, const auto& b) {
        for (std::size_t t = 0; t < a.size(); ++t)
          if (!std::equal(a[t].begin(), a[t].end(), b[t].begin(), b[t].end(), same_bits))
            return false;
        return true;
      };
      CHECK(same(once.value, twice.value));
      CHECK(same(once.bound, twice.bound));
    }
  }
}

TEST_CASE("no simulated kernel exceeds the isolation bounds, and they are not loose") {
  prove(BoundMode::kIsolate, 2, 1000);
}

// The largest err/bound of any tensor that is not exempt from `mistake`.
double worst_of(const Case& c, const Arithmetic& arithmetic, const testing::Style& style,
                testing::Mistake mistake) {
  const Tensors want =
      compute(c.problem, c.geometry, arithmetic, c.inputs(), options_for(BoundMode::kPrefix));
  const TensorValues got = simulate(c, arithmetic, style, nullptr, mistake);
  double worst = 0;
  for (std::size_t t = 0; t < kNumTensors; ++t)
    if (!want.value[t].empty())
      worst = std::max(worst, score(got[t], want.value[t], want.bound[t]).worst);
  return worst;
}

TEST_CASE("mistakes are far outside the bounds") {
  using testing::Mistake;
  const std::pair<Mistake, const char*> mistakes[] = {
      {Mistake::kAccumulatorNotRescaled, "accumulator not rescaled"},
      {Mistake::kSumNotRescaled, "row sum not rescaled"},
      {Mistake::kSumCountedTwice, "row sum counted twice"},
      {Mistake::kScaleMissing, "softmax_scale missing"},
      {Mistake::kCausalOffByOne, "mask off by one"},
  };
  for (const auto& [mistake, what] : mistakes) {
    std::mt19937_64 random(3);
    std::vector<double> ratios;
    for (int i = 0; i < 60; ++i) {
      Case c = testing::random_case(random, 40, false);
      c.problem.seqlen_q = c.problem.seqlen_k = 40;
      c.problem.head_dim = c.problem.head_dim_v = 16;
      c.problem.softmax_scale = 0.25f;
      c.problem.mask.kind = MaskKind::kCausal;
      c.geometry.tile.block_n = 8;
      c.geometry.num_splits = 1;
      c.geometry.tiles_per_split = 5;
      c.geometry.frame = Frame::kRunning;
      c.input_scale = 1;
      fill_inputs(random, c);
      auto [arithmetic, style] = testing::random_declared(random);
      arithmetic.accumulate = DType::kFp32;
      ratios.push_back(worst_of(c, arithmetic, style, mistake));
    }
    INFO(what);
    const double least = *std::min_element(ratios.begin(), ratios.end());
    std::printf("%-26s err/bound at least %.3g, median %.3g\n", what, least, median(ratios));
    CHECK(least > 10);
    CHECK(median(ratios) > 1000);
  }
}

// One row of one head over four keys, in two tiles of two.
Case small_case(DType dtype) {
  Case c;
  c.problem.dtype = dtype;
  c.problem.seqlen_k = 4;
  c.problem.head_dim = c.problem.head_dim_v = 2;
  c.geometry.tile = {1, 2};
  c.geometry.tiles_per_split = 2;
  std::mt19937_64 random(4);
  fill_inputs(random, c);
  return c;
}
void set(std::vector<std::byte>& data, const Case& c, int index, double x) {
  testing::store(c.problem.dtype, x,
                 data.data() + static_cast<std::size_t>(index) * size_of(c.problem.dtype));
}
Tensors bounds_of(const Case& c, const Arithmetic& arithmetic = {}) {
  return compute(c.problem, c.geometry, arithmetic, c.inputs(), options_for(BoundMode::kPrefix));
}
double bound_at(const Tensors& t, Tensor tensor, std::size_t i) {
  return t.bound[static_cast<std::size_t>(tensor)][i];
}

TEST_CASE("where the inputs hold NaN or infinity the bound says nothing, elsewhere it stays") {
  for (const double bad : {std::nan(""), kInf, -kInf}) {
    Case c = small_case(DType::kFp16);
    set(c.k, c, 2 * 2, bad);  // key 2, so tile 1
    const Tensors with_k = bounds_of(c);
    CHECK(bound_at(with_k, Tensor::kS, 1) < 1);
    CHECK(bound_at(with_k, Tensor::kS, 2) == kInf);
    CHECK(bound_at(with_k, Tensor::kS, 3) < 1);
    CHECK(bound_at(with_k, Tensor::kL, 0) < 1);
    CHECK(bound_at(with_k, Tensor::kM, 1) == kInf);
    CHECK(bound_at(with_k, Tensor::kP, 3) == kInf);
    CHECK(bound_at(with_k, Tensor::kO, 0) == kInf);
    CHECK(bound_at(with_k, Tensor::kLse, 0) == kInf);

    c = small_case(DType::kFp16);
    set(c.v, c, 2 * 2 + 1, bad);  // key 2, dim 1
    const Tensors with_v = bounds_of(c);
    CHECK(bound_at(with_v, Tensor::kPartialO, 1) < 1);
    CHECK(bound_at(with_v, Tensor::kPartialO, 3) == kInf);
    CHECK(bound_at(with_v, Tensor::kRunningO, 1) < 1);
    CHECK(bound_at(with_v, Tensor::kO, 1) == kInf);
    CHECK(bound_at(with_v, Tensor::kLse, 0) < 1);
  }
}

TEST_CASE("NaN in v behind the mask is not promised to stay out of its tile") {
  Case c = small_case(DType::kFp32);
  c.problem.mask.kind = MaskKind::kCausal;  // query 0 sees key 0 only
  set(c.v, c, 2 * 1, std::nan(""));         // key 1: in tile 0, masked
  const Tensors got = bounds_of(c);
  CHECK(bound_at(got, Tensor::kO, 0) == kInf);
  CHECK(bound_at(got, Tensor::kPartialO, 2) == 0);
}

TEST_CASE("where fp32 may overflow the bound is infinite") {
  Case c = small_case(DType::kFp32);
  for (int d = 0; d < 2; ++d) {
    set(c.q, c, d, 1e20);
    set(c.k, c, d, d == 0 ? 1e19 : -1e19);  // the dot is 0, its terms are beyond fp32
  }
  CHECK(bound_at(bounds_of(c), Tensor::kS, 0) == kInf);
  CHECK(bound_at(bounds_of(c), Tensor::kO, 0) == kInf);
}

TEST_CASE("where the output's type may overflow the bound of o is infinite, and only there") {
  Case c = small_case(DType::kFp32);
  for (int i = 0; i < 4; ++i) {
    set(c.v, c, 2 * i, 65600);
    set(c.v, c, 2 * i + 1, 65000);
  }
  Arithmetic arithmetic;
  arithmetic.output = DType::kFp16;
  const Tensors half = bounds_of(c, arithmetic);
  CHECK(bound_at(half, Tensor::kO, 0) == kInf);
  CHECK(bound_at(half, Tensor::kO, 1) < 100);
  arithmetic.output = DType::kFp32;
  CHECK(bound_at(bounds_of(c, arithmetic), Tensor::kO, 0) < 1);
}

TEST_CASE("a coarser declaration never has a smaller bound") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 50; ++i) {
    const Case c = testing::random_case(random, 30, false);
    Arithmetic coarse;
    coarse.accumulate = DType::kFp16;
    coarse.probs = coarse.partial = coarse.output = coarse.scaled_q = DType::kBf16;
    coarse.scores = coarse.partial_stats = DType::kBf16;
    Arithmetic fine;
    fine.output = DType::kFp32;
    const Tensors f = bounds_of(c, fine), g = bounds_of(c, coarse);
    for (std::size_t t = 0; t < kNumTensors; ++t)
      for (std::size_t j = 0; j < f.bound[t].size(); ++j) REQUIRE(f.bound[t][j] <= g.bound[t][j]);
  }
}

}  // namespace
}  // namespace attn_diag::reference

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include "attn_diag/reference/reference.h"
#include "reference/testing/catch2_test.h"
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
      const auto same = [](const auto& a, const auto& b) {
        for (std::size_t t = 0; t < a.size(); ++t)
          if (a[t].size() != b[t].size() ||
              std::memcmp(a[t].data(), b[t].data(), a[t].size() * sizeof(double)) != 0)
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

}  // namespace
}  // namespace attn_diag::reference

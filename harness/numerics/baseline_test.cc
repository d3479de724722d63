#include <cmath>
#include <random>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/numerics.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

// A baseline of `cells` errors, log-uniform below `largest` of the bound.
Baseline sample(unsigned seed, int cells, double largest) {
  std::mt19937 random(seed);
  Baseline b;
  b.of = "a case";
  b.kernel = "fa1";
  b.created = "today";
  BaselineTensor t;
  t.name = "o";
  t.ulps.resize(kUlpBins);
  t.ratios.resize(kRatioBins);
  for (int i = 0; i < cells; ++i) {
    const double x = largest * std::pow(2.0, -8.0 * std::uniform_real_distribution<>()(random));
    ++t.ratios[static_cast<std::size_t>(ratio_bin(x))];
    ++t.ulps[static_cast<std::size_t>(ulp_bin(4 * x))];
  }
  b.tensors.push_back(t);
  return b;
}

TEST_CASE("a baseline that is written and read is the same") {
  Baseline b = sample(1, 500, 0.5);
  b.tensors[0].census.nan = 3;
  const Baseline read = read_baseline(baseline_text(b), "x.json");
  REQUIRE(read.of == b.of);
  REQUIRE(read.kernel == "fa1");
  REQUIRE(read.tensors[0].ratios == b.tensors[0].ratios);
  REQUIRE(read.tensors[0].census.nan == 3);
  const DriftReport same = find_drift(b, read);
  REQUIRE(same.identical);
  REQUIRE(same.drifted.empty());
}

TEST_CASE("samples of one distribution have not drifted; of one twice as wide they have") {
  for (unsigned seed = 2; seed < 40; ++seed) {
    const DriftReport chance = find_drift(sample(1, 2000, 0.5), sample(seed, 3000, 0.5));
    REQUIRE_FALSE(chance.identical);
    REQUIRE(chance.drifted.empty());
  }
  // The median of thirty cells moves by more than a quarter by itself.
  for (unsigned seed = 2; seed < 40; ++seed)
    REQUIRE(find_drift(sample(1, 30, 0.5), sample(seed, 30, 0.5)).drifted.empty());
  const DriftReport worse = find_drift(sample(1, 2000, 0.25), sample(2, 2000, 0.5));
  REQUIRE(worse.drifted.size() == 1);
  REQUIRE(worse.drifted[0].tensor == "o");
  REQUIRE(worse.drifted[0].what.find("larger errors") != std::string::npos);
  const DriftReport better = find_drift(sample(1, 2000, 0.5), sample(2, 2000, 0.25));
  REQUIRE(better.drifted.size() == 1);
  REQUIRE(better.drifted[0].what.find("smaller errors") != std::string::npos);
}

TEST_CASE("a NaN that was not there is drift, and so is a tensor that is gone") {
  Baseline before = sample(1, 100, 0.5), now = before;
  now.tensors[0].census.nan = 1;
  REQUIRE(find_drift(before, now).drifted.front().what == "nan: 1 cells, were 0");
  now = before;
  now.tensors.clear();
  REQUIRE(find_drift(before, now).drifted.size() == 1);
  REQUIRE_FALSE(find_drift(before, now).identical);
}

TEST_CASE("what is no baseline, or one of another case, is refused in words") {
  Baseline other = sample(1, 10, 0.5);
  other.of = "another case";
  REQUIRE_THROWS_AS(find_drift(other, sample(1, 10, 0.5)), Error);
  for (const char* text :
       {"", "{}", "[1]", "{\"schema\": \"x\"}",
        "{\"schema\":\"attn-diag-numerics-baseline/1\",\"of\":\"\",\"kernel\":\"\","
        "\"created\":\"\",\"build_id\":\"\",\"tensors\":[{\"name\":\"o\",\"ulps\":[1],"
        "\"err_over_bound\":[],\"census\":{}}]}"})
    REQUIRE_THROWS_AS(read_baseline(text, "x.json"), Error);
}

}  // namespace
}  // namespace attn_diag

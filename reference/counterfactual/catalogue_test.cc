// What holds for every hypothesis of the catalogue.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>

#include "attn_diag/reference/counterfactual.h"
#include "reference/counterfactual/testing/catalogue_page.h"
#include "reference/counterfactual/testing/rows.h"
#include "reference/counterfactual/unite.h"
#include "reference/testing/catch2_test.h"
#include "reference/testing/random_case.h"

namespace attn_diag::reference {
namespace {

using testing::all_rows;
using testing::kAllTensors;

bool within(double a, double b, double bound) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= bound;
}

// The first stage of which a known cell is another number than the right formula's, beyond rounding.
std::optional<Stage> first_changed(const Prediction& right, const Prediction& wrong) {
  for (const TensorInfo& t : kTensors)
    for (std::size_t i = 0; i < right[t.id].value.size(); ++i) {
      if (wrong[t.id].known[i] == 0) continue;
      const double bound = 1e-9 * (1 + std::fabs(right[t.id].value[i]));
      if (!within(right[t.id].value[i], wrong[t.id].value[i], bound)) return t.stage;
    }
  return std::nullopt;
}

TEST_CASE("ids are unique, kebab-case and found; everything is said") {
  std::set<std::string_view> ids;
  for (const Hypothesis* hypothesis : catalogue()) {
    const HypothesisInfo& info = hypothesis->info();
    INFO(info.id);
    CHECK(ids.insert(info.id).second);
    CHECK(std::all_of(info.id.begin(), info.id.end(),
                      [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; }));
    CHECK(find_hypothesis(info.id) == hypothesis);
    CHECK(!info.statement.empty());
    CHECK(info.formula.substr(0, 1) == "F");
    CHECK(!info.remedy.empty());
  }
  CHECK(find_hypothesis("no-such-bug") == nullptr);
}

TEST_CASE("docs/catalogue.md lists exactly the catalogue") {
  std::ifstream file(ATTN_DIAG_CATALOGUE_PAGE);
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  INFO("if the code is right: ninja -C build update_catalogue_page");
  CHECK(page == testing::catalogue_page());
}

TEST_CASE("every variant sets its deviation, names declared parameters, and pairs with another") {
  std::mt19937_64 random(7);
  std::set<std::string_view> seen;
  for (int n = 0; n < 60; ++n) {
    const testing::Case random_case = testing::random_case(random, 70, false);
    INFO(random_case.describe());
    const PredictionInputs c(random_case.problem, random_case.geometry, {}, random_case.inputs());
    for (const Hypothesis* hypothesis : catalogue()) {
      INFO(hypothesis->info().id);
      std::set<std::string> labels;
      for (const Variant& variant : hypothesis->variants(c)) {
        seen.insert(hypothesis->info().id);
        const Variant fixed = variant.free ? variant.at(0.37) : variant;
        INFO(variant.label());
        CHECK(labels.insert(variant.label()).second);
        CHECK(fixed.deviation != Deviation{});
        CHECK(unite({}, fixed.deviation) == fixed.deviation);  // it knows every field
        CHECK(variant.hypotheses == std::vector<const Hypothesis*>{hypothesis});
        for (const ParameterValue& p : fixed.parameters) {
          const auto& names = hypothesis->info().parameters;
          CHECK(std::find(names.begin(), names.end(), p.name) != names.end());
        }
        CHECK(!combine(variant, variant));
        const bool is_gain = hypothesis->info().id == "gain";
        const Variant other = find_hypothesis(is_gain ? "l-twice" : "gain")->variants(c).at(0);
        if (variant.free && other.free) continue;
        const auto pair = combine(variant, other);
        if (!pair) continue;
        const Deviation both = pair->free ? pair->at(3).deviation : pair->deviation;
        CHECK(both != fixed.deviation);
      }
    }
  }
  // Bias and softcap are no part of random cases.
  for (const Hypothesis* hypothesis : catalogue()) {
    const std::string_view id = hypothesis->info().id;
    if (id.find("bias") != id.npos || id.find("softcap") != id.npos) continue;
    INFO(id);
    CHECK(seen.count(id) == 1);
  }
}

TEST_CASE("a pair is both bugs at once; what excludes itself is no pair") {
  std::mt19937_64 random(3);
  testing::Case random_case = testing::random_case(random, 40, false);
  random_case.problem.mask = {};
  const PredictionInputs c(random_case.problem, random_case.geometry, {}, random_case.inputs());
  const auto variant = [&](const char* id) { return find_hypothesis(id)->variants(c).at(0); };
  const std::optional<Variant> pair = combine(variant("temperature"), variant("l-twice"));
  REQUIRE(pair.has_value());
  CHECK(pair->label() == "temperature(kappa = ?) + l-twice");
  CHECK(pair->at(2, "two").label() == "temperature(kappa = two) + l-twice");
  Deviation both;
  both.logits.kappa = 2;
  both.finish.l_power = 2;
  CHECK(pair->at(2).deviation == both);
  CHECK(combine(variant("l-twice"), variant("temperature"))->at(2).deviation == both);
  CHECK(!combine(variant("l-missing"), variant("l-twice")));      // one field
  CHECK(!combine(variant("temperature"), variant("gain")));       // two free parameters
  CHECK(!combine(variant("gain").at(2), variant("gain").at(3)));  // one hypothesis
  CHECK(!combine(variant("temperature"), variant("temperature").at(2)));
  CHECK_THROWS_AS(find_hypothesis("l-twice")->set(both, 1), std::invalid_argument);
}

TEST_CASE("every hypothesis changes what it says first, on some case, and nothing before") {
  std::mt19937_64 random(11);
  std::map<std::string_view, int> changed;
  Prediction right, wrong;
  for (int n = 0; n < 24; ++n) {
    testing::Case random_case = testing::random_case(random, 36, false);
    random_case.input_scale = 1.5;
    fill_inputs(random, random_case);
    if (n % 3 == 0) random_case.geometry.tile = {16, 16};
    random_case.geometry.tiles_per_split = ceil_div(
        num_kv_tiles(random_case.problem, random_case.geometry), random_case.geometry.num_splits);
    INFO(random_case.describe());
    const PredictionInputs c(random_case.problem, random_case.geometry, {.output = DType::kFp32},
                             random_case.inputs());
    const std::vector<RowIndex> rows = all_rows(c.problem());
    predict(c, rows, {}, kAllTensors, right);
    for (const Hypothesis* hypothesis : catalogue()) {
      const HypothesisInfo& info = hypothesis->info();
      for (const Variant& variant : hypothesis->variants(c)) {
        const Variant fixed = variant.free ? variant.at(0.37) : variant;
        INFO(fixed.label());
        predict(c, rows, fixed.deviation, kAllTensors, wrong);
        for (const TensorInfo& t : kTensors)
          for (std::size_t i = 0; i < wrong[t.id].bound.size(); ++i)
            if (!(wrong[t.id].bound[i] >= 0) && !std::isnan(wrong[t.id].value[i]))
              FAIL(t.name << ": bound of cell " << i << " is " << wrong[t.id].bound[i]);
        const std::optional<Stage> first = first_changed(right, wrong);
        if (!first) continue;
        ++changed[info.id];
        CHECK(*first >= info.stage);
      }
    }
  }
  for (const Hypothesis* hypothesis : catalogue()) {
    const std::string_view id = hypothesis->info().id;
    if (id.find("bias") != id.npos || id.find("softcap") != id.npos) continue;
    INFO(id);
    CHECK(changed[id] > 0);
  }
}

TEST_CASE(
    "from recorded S, what changes S changes nothing, and the rest what it changes from q and k") {
  std::mt19937_64 random(17);
  Prediction given, computed, right;
  constexpr std::uint32_t kWanted = tensor_bit(Tensor::kL) | tensor_bit(Tensor::kO);
  for (int n = 0; n < 8; ++n) {
    testing::Case random_case = testing::random_case(random, 36, false);
    random_case.input_scale = 1;
    fill_inputs(random, random_case);
    INFO(random_case.describe());
    const Problem& p = random_case.problem;
    const Geometry& g = random_case.geometry;
    const PredictionInputs from_qk(p, g, {}, random_case.inputs());
    const std::vector<RowIndex> rows = all_rows(p);
    predict(from_qk, rows, {}, kAllTensors, right);
    const std::vector<double>& s = right[Tensor::kS].value;
    const PredictionInputs from_s(p, g, {}, random_case.inputs(), {},
                                  {{Tensor::kS, std::vector<float>(s.begin(), s.end())}});
    for (const Hypothesis* hypothesis : catalogue()) {
      const HypothesisInfo& info = hypothesis->info();
      // Roundings and thresholds jump where S was rounded to fp32.
      if (info.stage == Stage::kQk || info.id.find("narrow") != info.id.npos ||
          info.id == "rescale-skipped" || info.id == "exp-linear")
        continue;
      for (const Variant& variant : hypothesis->variants(from_s)) {
        const Variant fixed = variant.free ? variant.at(0.37) : variant;
        INFO(fixed.label());
        predict(from_s, rows, fixed.deviation, kWanted, given);
        predict(from_qk, rows, fixed.deviation, kWanted, computed);
        for (const Tensor t : {Tensor::kL, Tensor::kO})
          for (std::size_t i = 0; i < given[t].value.size(); ++i) {
            const double a = given[t].value[i], b = computed[t].value[i];
            if (!within(a, b, 1e-3 * (1 + std::fabs(b))))
              FAIL(name(t) << " " << i << ": " << a << " from S, " << b << " from q and k");
          }
      }
    }
  }
}

TEST_CASE("what is predicted does not depend on what else is wanted, nor on other rows") {
  std::mt19937_64 random(13);
  Prediction all, one;
  for (int n = 0; n < 5; ++n) {
    const testing::Case random_case = testing::random_case(random, 36, false);
    INFO(random_case.describe());
    const PredictionInputs c(random_case.problem, random_case.geometry, {}, random_case.inputs());
    const std::vector<RowIndex> rows = all_rows(c.problem());
    const std::vector<RowIndex> last{rows.back()};
    for (const Hypothesis* hypothesis : catalogue())
      for (const Variant& variant : hypothesis->variants(c)) {
        const Variant fixed = variant.free ? variant.at(0.37) : variant;
        INFO(fixed.label());
        predict(c, rows, fixed.deviation, kAllTensors, all);
        for (const TensorInfo& t : kTensors) {
          INFO(t.name);
          predict(c, last, fixed.deviation, tensor_bit(t.id), one);
          const Prediction::Values& whole = all[t.id];
          const std::size_t cells = one[t.id].value.size(), begin = whole.value.size() - cells;
          for (std::size_t i = 0; i < cells; ++i) {
            const double a = one[t.id].value[i], b = whole.value[begin + i];
            const bool same = a == b || (std::isnan(a) && std::isnan(b));
            if (!same || one[t.id].known[i] != whole.known[begin + i])
              FAIL("cell " << i << ": " << a << " alone, " << b << " with others");
          }
        }
      }
  }
}

}  // namespace
}  // namespace attn_diag::reference

// Kernels with two bugs at once, planted by the prediction of both.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/diagnose.h"
#include "harness/diagnose/pairs.h"
#include "harness/diagnose/stages.h"
#include "harness/diagnose/testing/buggy_capture.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using testing::BuggyCase;

// One variant of each bug, among those that are tried in pairs.
std::vector<reference::Variant> fixed_variants(const reference::PredictionInputs& data) {
  std::vector<reference::Variant> all;
  for (const reference::Hypothesis* hypothesis : reference::catalogue()) {
    std::vector<reference::Variant> variants = hypothesis->variants(data);
    std::erase_if(variants, [](const reference::Variant& v) { return !v.in_pairs; });
    if (variants.empty()) continue;
    const reference::Variant& v = variants[variants.size() / 2];
    if (!v.free) {
      all.push_back(v);
    } else if (!v.free->named.empty()) {
      all.push_back(v.at(v.free->named.back().value, v.free->named.back().named));
    }
  }
  return all;
}

// A variant that is not the right formula's data, and gives its numbers: no split is left out.
class HasNoEffect : public reference::Hypothesis {
 public:
  const reference::HypothesisInfo& info() const override { return x_info; }
  std::vector<reference::Variant> variants(const reference::PredictionInputs&) const override {
    reference::Variant variant;
    variant.hypotheses = {this};
    variant.deviation.combine.max_of_counted = true;
    return {variant};
  }
  void set(reference::Deviation&, double) const override {}

 private:
  reference::HypothesisInfo x_info = [] {
    reference::HypothesisInfo info;
    info.id = "has-no-effect";
    return info;
  }();
};

bool holds(const Match& match, const std::string& id) {
  return std::any_of(match.parts.begin(), match.parts.end(),
                     [&](const Match::Part& part) { return part.id == id; }) ||
         std::any_of(match.equivalent.begin(), match.equivalent.end(),
                     [&](const std::string& label) { return label.find(id) != label.npos; });
}

// Whether rounding alone makes the two differ no more than this.
bool alike(const Capture& a, const Capture& b) {
  return compare_captures(a, b, Tolerance{}).agrees();
}

}  // namespace

TEST_CASE("of ten pairs of bugs at least eight are named together, and none wrongly") {
  const BuggyCase c = testing::buggy_case();
  const std::vector<reference::Variant> all = fixed_variants(testing::data_of(c));
  constexpr int kPairs = 10;
  int planted = 0, both = 0;
  std::string wrong, missed;
  std::uint64_t state = 12345;
  const auto draw = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    return static_cast<std::size_t>(state >> 33) % all.size();
  };
  while (planted < kPairs) {
    const reference::Variant& a = all[draw()];
    const reference::Variant& b = all[draw()];
    const std::optional<reference::Variant> pair = reference::combine(a, b);
    if (!pair) continue;
    const Capture capture = testing::buggy_capture(c, pair->deviation);
    // Where one bug hides the other, only one can be named.
    if (alike(capture, testing::buggy_capture(c, a.deviation)) ||
        alike(capture, testing::buggy_capture(c, b.deviation)))
      continue;
    ++planted;
    const Diagnosis d = diagnose(capture, {});
    const auto has = [&](const Match& m, const reference::Variant& v) {
      return holds(m, std::string(v.hypotheses.front()->info().id));
    };
    const bool named = std::any_of(d.best.begin(), d.best.end(),
                                   [&](const Match& m) { return has(m, a) && has(m, b); });
    // A NaN everywhere has no second cause: then it is not named, but nothing else is.
    const bool answered =
        d.verdict == DiagnosisVerdict::kNamed || d.verdict == DiagnosisVerdict::kClass;
    const bool neither =
        answered && std::none_of(d.best.begin(), d.best.end(),
                                 [&](const Match& m) { return has(m, a) || has(m, b); });
    both += named;
    if (!named)
      (neither ? wrong : missed) +=
          ' ' + pair->label() + " (" + (d.best.empty() ? "" : d.best.front().label) + ')';
  }
  INFO("wrong:" << wrong << "; missed:" << missed);
  CHECK(wrong.empty());
  CHECK(both * 10 >= planted * 8);
}

TEST_CASE("without the search for pairs two bugs are not named") {
  const BuggyCase c = testing::buggy_case();
  const std::vector<reference::Variant> all = fixed_variants(testing::data_of(c));
  const auto variant = [&](const std::string& id) {
    return *std::find_if(all.begin(), all.end(), [&](const reference::Variant& v) {
      return v.hypotheses.front()->info().id == id;
    });
  };
  const std::optional<reference::Variant> pair =
      reference::combine(variant("l-twice"), variant("temperature"));
  REQUIRE(pair.has_value());
  const Capture capture = testing::buggy_capture(c, pair->deviation);
  DiagnoseOptions options;
  const Diagnosis with = diagnose(capture, options);
  CHECK(with.verdict == DiagnosisVerdict::kNamed);
  CHECK(with.best.front().parts.size() == 2);
  options.pairs = false;
  const Diagnosis without = diagnose(capture, options);
  CHECK(without.verdict != DiagnosisVerdict::kNamed);
  CHECK(without.verdict != DiagnosisVerdict::kClass);
}

TEST_CASE("a change that would not be seen alone is no half of a pair") {
  const BuggyCase c = testing::buggy_case();
  const reference::Hypothesis& real = *reference::find_hypothesis("l-twice");
  reference::Deviation deviation = real.variants(testing::data_of(c)).front().deviation;
  const Capture capture = testing::buggy_capture(c, deviation);
  const matching::Cuts cuts = matching::make_cuts(capture, {}, {});
  matching::Evidence evidence(capture, {Tensor::kLse, Tensor::kO});
  for (std::int64_t row = 0; row < evidence.rows(); ++row)
    if (row % c.problem.seqlen_q != 0) evidence.mark_wrong(row);
  const matching::Search search(evidence, cuts, 1);
  // Beside l-twice it accounts for everything, as l-twice does without it.
  const HasNoEffect nothing;
  matching::PairLimit limit;
  CHECK(matching::find_pairs(search, {&nothing, &real}, limit).empty());
}

}  // namespace attn_diag

#include "attn_diag/harness/diagnose.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "attn_diag/harness/error.h"
#include "harness/diagnose/testing/buggy_capture.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using testing::buggy_capture;
using testing::buggy_case;
using testing::BuggyCase;

const reference::Hypothesis& bug(const std::string& id) {
  const reference::Hypothesis* found = reference::find_hypothesis(id);
  REQUIRE(found != nullptr);
  return *found;
}

// The first variant with any free parameter at its first named value.
reference::Variant some_variant(const reference::Hypothesis& hypothesis, const BuggyCase& c) {
  const std::vector<reference::Variant> all = hypothesis.variants(testing::data_of(c));
  REQUIRE_FALSE(all.empty());
  const reference::Variant& first = all.front();
  if (!first.free) return first;
  REQUIRE_FALSE(first.free->named.empty());
  const reference::ParameterValue& value = first.free->named.front();
  return first.at(value.value, value.named);
}

bool names(const Match& match, const std::string& id) {
  return std::any_of(match.parts.begin(), match.parts.end(),
                     [&](const Match::Part& part) { return part.id == id; });
}

}  // namespace

TEST_CASE("a right output has nothing to diagnose") {
  const Diagnosis d = diagnose(buggy_capture(buggy_case(), {}), {});
  CHECK(d.verdict == DiagnosisVerdict::kNothingWrong);
  CHECK(d.best.empty());
  CHECK(d.rows == 2 * 2 * 96);
}

TEST_CASE("a row sum that divides twice is named from o and lse, with its evidence") {
  const BuggyCase c = buggy_case();
  const Diagnosis d = diagnose(buggy_capture(c, some_variant(bug("l-twice"), c).deviation), {});
  REQUIRE(d.verdict == DiagnosisVerdict::kNamed);
  REQUIRE(d.best.size() == 1);
  const Match& m = d.best.front();
  CHECK(names(m, "l-twice"));
  CHECK(m.confirmed);
  CHECK(m.rows_explained == d.rows);
  CHECK(m.wrong_rows_explained == d.wrong_rows);
  CHECK(d.wrong_rows < d.rows);  // query 0 sees one key
  CHECK(m.residual_over_bound <= 1);
  REQUIRE(d.runner_up.has_value());
  INFO(d.runner_up->label << ": " << d.runner_up->telling_rows << " telling, "
                          << d.runner_up->rows_explained << " of " << d.runner_up->rows);
  CHECK(d.runner_up->residual_over_bound > 2);
  CHECK(d.confidence > 0.5);
}

TEST_CASE("a temperature is fitted and snapped to its name") {
  const BuggyCase c = buggy_case();
  const reference::Variant planted = some_variant(bug("temperature"), c);
  const Diagnosis d = diagnose(buggy_capture(c, planted.deviation), {});
  REQUIRE(d.verdict == DiagnosisVerdict::kNamed);
  REQUIRE(d.best.front().parts.front().parameters.size() == 1);
  const reference::ParameterValue& fitted = d.best.front().parts.front().parameters.front();
  CHECK(fitted.value == planted.parameters.front().value);
  CHECK(fitted.named == planted.parameters.front().named);
}

TEST_CASE("with stage tensors it starts at the first stage that is wrong") {
  const BuggyCase c = buggy_case();
  const Diagnosis d =
      diagnose(buggy_capture(c, some_variant(bug("temperature"), c).deviation, true), {});
  REQUIRE(d.verdict == DiagnosisVerdict::kNamed);
  CHECK(names(d.best.front(), "temperature"));
  CHECK(d.stage == Stage::kQk);
  CHECK(d.tensors == std::vector{Tensor::kS, Tensor::kLse, Tensor::kO});
}

TEST_CASE("where nothing accounts for what was recorded of a stage, o and lse are matched alone") {
  const BuggyCase c = buggy_case();
  Capture capture = buggy_capture(c, some_variant(bug("l-twice"), c).deviation, true);
  TensorData& partial = *capture.tensors[static_cast<std::size_t>(Tensor::kPartialO)];
  for (std::int64_t i = 0; i < partial.size(); ++i)
    store_element(partial.bytes.data(), partial.dtype, i, std::sin(static_cast<double>(i)));
  const Diagnosis d = diagnose(capture, {});
  REQUIRE(d.verdict == DiagnosisVerdict::kNamed);
  CHECK(names(d.best.front(), "l-twice"));
  CHECK(d.stage == Stage::kPv);
  CHECK(d.tensors == std::vector{Tensor::kLse, Tensor::kO});
  CHECK_THAT(d.notes.back(), contains("found by o and lse"));
}

TEST_CASE("an lse that no bug gives does not hide the name of what o shows") {
  const BuggyCase c = buggy_case();
  Capture capture = buggy_capture(c, some_variant(bug("l-twice"), c).deviation);
  TensorData& lse = *capture.tensors[static_cast<std::size_t>(Tensor::kLse)];
  for (std::int64_t i = 0; i < lse.size(); ++i)
    store_element(lse.bytes.data(), lse.dtype, i, std::sin(static_cast<double>(i)));
  const Diagnosis d = diagnose(capture, {});
  REQUIRE(d.verdict == DiagnosisVerdict::kNamed);
  CHECK(names(d.best.front(), "l-twice"));
  CHECK(d.tensors == std::vector{Tensor::kO});
  CHECK_THAT(d.notes.back(), contains("lse was left out"));
}

TEST_CASE("what other splits would tell apart is proposed to be run in other splits") {
  // A split a tile: a last, partial tile that is dropped is a split that is dropped.
  BuggyCase c = buggy_case();
  c.problem.seqlen_k = 40;
  c.problem.mask = {};
  c.geometry.num_splits = 3;
  c.geometry.tiles_per_split = 1;
  reference::Deviation deviation;
  deviation.combine.scaled_split = 2;
  deviation.combine.factor = 0;
  deviation.combine.max_of_counted = true;
  const Diagnosis d = diagnose(buggy_capture(c, deviation), {});
  REQUIRE(d.verdict == DiagnosisVerdict::kClass);
  REQUIRE_FALSE(d.experiments.empty());
  const auto in_other_splits = [](const TellingRun& e) { return e.cut.has_value(); };
  const auto it = std::find_if(d.experiments.begin(), d.experiments.end(), in_other_splits);
  REQUIRE(it != d.experiments.end());
  CHECK(it->what == "run with --num-splits 1");
  CHECK(it->cut->num_splits == 1);
  CHECK(it->inputs.empty());
}

TEST_CASE("an experiment tells every form of a bug from the other bug") {
  // A max that rises by little: a rescale that is skipped below 2, 4 or 8 is one that is missing.
  BuggyCase c = buggy_case();
  c.geometry.num_splits = 1;
  c.geometry.tiles_per_split = num_kv_tiles(c.problem, c.geometry);
  c.geometry.has_split_merge = false;
  const Diagnosis d =
      diagnose(buggy_capture(c, some_variant(bug("alpha-missing-o"), c).deviation), {});
  REQUIRE(d.verdict == DiagnosisVerdict::kClass);
  REQUIRE_FALSE(d.experiments.empty());
  CHECK(d.experiments.front().inputs == "large");
  for (const Match& match : d.best)
    if (names(match, "rescale-skipped")) CHECK_FALSE(match.other_parameters.empty());
}

TEST_CASE("what is within wide bounds alone is no runner-up, and is said to be not judged") {
  BuggyCase c = buggy_case();
  c.inputs = "cancel";
  Capture capture = buggy_capture(c, some_variant(bug("l-twice"), c).deviation);
  capture.tensors[static_cast<std::size_t>(Tensor::kLse)].reset();
  const Diagnosis d = diagnose(capture, {});
  REQUIRE(d.verdict == DiagnosisVerdict::kNamed);
  REQUIRE(d.runner_up.has_value());
  CHECK(d.runner_up->residual_over_bound > 1);
  for (const Match& match : d.ruled_out) CHECK(match.residual_over_bound > 1);
  CHECK(std::any_of(d.notes.begin(), d.notes.end(), [](const std::string& note) {
    return note.find("Not judged: temperature") == 0;
  }));
}

TEST_CASE("the diagnosis does not depend on the number of threads") {
  const BuggyCase c = buggy_case();
  const Capture capture = buggy_capture(c, some_variant(bug("alpha-missing-o"), c).deviation);
  DiagnoseOptions one, many;
  one.threads = 1;
  many.threads = 5;
  const Diagnosis a = diagnose(capture, one), b = diagnose(capture, many);
  REQUIRE(a.best.size() == b.best.size());
  CHECK(a.verdict == b.verdict);
  CHECK(a.confidence == b.confidence);
  REQUIRE(a.ruled_out.size() == b.ruled_out.size());
  for (std::size_t i = 0; i < a.ruled_out.size(); ++i) {
    CHECK(a.ruled_out[i].label == b.ruled_out[i].label);
    CHECK(a.ruled_out[i].residual_over_bound == b.ruled_out[i].residual_over_bound);
    CHECK(a.ruled_out[i].median_residual_over_bound == b.ruled_out[i].median_residual_over_bound);
  }
}

TEST_CASE("without inputs or without anything recorded there is nothing to diagnose") {
  Capture nothing = buggy_capture(buggy_case(), {});
  nothing.tensors = {};
  CHECK_THROWS_AS(diagnose(nothing, {}), Error);
  nothing.k.edit().clear();
  CHECK_THROWS_WITH(diagnose(nothing, {}), contains("q, k and v"));
}

TEST_CASE("why not: the cell at which a hypothesis fails, and names near an unknown one") {
  const BuggyCase c = buggy_case();
  const Capture capture = buggy_capture(c, some_variant(bug("l-twice"), c).deviation);
  const WhyNot fails = why_not(capture, {}, "temperature");
  CHECK(fails.possible);
  REQUIRE(fails.worst.has_value());
  CHECK(std::abs(fails.worst->actual - fails.worst->predicted) > fails.worst->bound);
  CHECK(fails.match.rows == 2 * 2 * 96);
  CHECK_FALSE(why_not(capture, {}, "l-twice").worst.has_value());
  CHECK_THROWS_WITH(why_not(capture, {}, "temperatur"), contains("Did you mean temperature?"));
}

TEST_CASE("what a bug leaves unwritten is no number where attn-diag ran the kernel itself") {
  const BuggyCase c = buggy_case();
  reference::Deviation eight_columns;
  eight_columns.store.columns = 8;
  Capture capture = buggy_capture(c, eight_columns);
  const auto is_named = [&] {
    const Diagnosis d = diagnose(capture, {});
    return d.verdict == DiagnosisVerdict::kNamed && names(d.best.front(), "output-columns");
  };
  capture.provenance.backend = "host";
  capture.coverage[static_cast<std::size_t>(Tensor::kO)].never = 2 * 2 * 96 * 8;
  CHECK(is_named());
  TensorData& o = *capture.tensors[static_cast<std::size_t>(Tensor::kO)];
  for (std::int64_t i = 0; i < o.size(); ++i)
    if (i % 16 >= 8) store_element(o.bytes.data(), o.dtype, i, 7);
  CHECK_FALSE(is_named());
  CHECK(why_not(capture, {}, "output-columns").worst.has_value());
  capture.provenance.backend = "unknown";  // as where another program wrote the file
  CHECK(is_named());
}

namespace {

// The right output, changed.
template <class Change>
Capture changed(const BuggyCase& c, Tensor t, const Change& change) {
  Capture capture = buggy_capture(c, {});
  TensorData& data = *capture.tensors[static_cast<std::size_t>(t)];
  for (std::int64_t i = 0; i < data.size(); ++i)
    store_element(data.bytes.data(), data.dtype, i, change(data.at(i), i));
  return capture;
}

bool answered(const Diagnosis& d) {
  return d.verdict == DiagnosisVerdict::kNamed || d.verdict == DiagnosisVerdict::kClass;
}

bool says(const std::vector<std::string>& sentences, const std::string& part) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& s) { return s.find(part) != s.npos; });
}

}  // namespace

TEST_CASE("an output that is NaN or 0 everywhere has no name, by one bug or two") {
  BuggyCase c = buggy_case();
  c.problem.batch = c.problem.heads = c.problem.kv_heads = 1;
  c.problem.seqlen_q = c.problem.seqlen_k = 32;
  c.geometry.tiles_per_split = 1;
  DiagnoseOptions options;
  options.pair_work = 1e8;
  for (const double value : {std::nan(""), 0.0, HUGE_VAL}) {
    const Diagnosis d =
        diagnose(changed(c, Tensor::kO, [&](double, std::int64_t) { return value; }), options);
    INFO(value << ": " << (d.best.empty() ? "" : d.best.front().label));
    CHECK(d.verdict == DiagnosisVerdict::kUnknown);
    if (std::isnan(value)) {
      CHECK(says(d.residual,
                 "NaN begins in o: 512 of 512 cells, first o(0, 0, 0, 0); before it "
                 "lse hold none"));
      CHECK(says(d.residual, "32 of 32 rows of o hold NaN, 32 of them in every dim"));
    }
  }
}

TEST_CASE("NaN from one key on: which rows, and which key they see") {
  const BuggyCase c = buggy_case();
  DiagnoseOptions options;
  options.pairs = false;
  const Diagnosis d = diagnose(
      changed(c, Tensor::kO,
              [&](double x, std::int64_t i) { return i / 16 % 96 >= 40 ? std::nan("") : x; }),
      options);
  CHECK_FALSE(answered(d));
  CHECK(says(d.residual,
             "224 of 384 rows of o hold NaN, 224 of them in every dim: of every head, "
             "queries 40-95"));
  CHECK(says(d.residual, "the rows of o with NaN are those that see key 40, and no others"));
}

TEST_CASE(
    "an lse that is right rules out a bug by which it would be wrong, though o is as it predicts") {
  const BuggyCase c = buggy_case();
  Capture capture = buggy_capture(c, some_variant(bug("temperature"), c).deviation);
  capture.tensors[static_cast<std::size_t>(Tensor::kLse)] =
      buggy_capture(c, {}).tensors[static_cast<std::size_t>(Tensor::kLse)];
  DiagnoseOptions options;
  options.pairs = false;
  const Diagnosis d = diagnose(capture, options);
  INFO((d.best.empty() ? "" : d.best.front().label));
  CHECK_FALSE((answered(d) && names(d.best.front(), "temperature")));
}

TEST_CASE("one wrong row that is the right one times a number is no fitted factor") {
  const BuggyCase c = buggy_case();
  DiagnoseOptions options;
  options.pairs = false;
  const Diagnosis d = diagnose(
      changed(c, Tensor::kO, [&](double x, std::int64_t i) { return i / 16 == 77 ? 1.37 * x : x; }),
      options);
  INFO((d.best.empty() ? "" : d.best.front().label));
  CHECK(d.wrong_rows == 1);
  CHECK_FALSE(answered(d));
}

TEST_CASE(
    "pairs end at their limit, say what was not tried, and end alike with any number of threads") {
  const BuggyCase c = buggy_case();
  const Capture capture = changed(
      c, Tensor::kO, [&](double x, std::int64_t i) { return std::tanh(x) + (i % 7) * 0.01; });
  DiagnoseOptions few;
  few.pair_work = 2e7;
  std::string step;
  few.on_step = [&](int, int, const std::string& what) { step += what + '\n'; };
  few.threads = 1;
  const Diagnosis a = diagnose(capture, few);
  CHECK(a.verdict == DiagnosisVerdict::kUnknown);
  CHECK_THAT(step, contains("trying pairs of bugs: "));
  CHECK(says(a.notes, " pairs of bugs "));
  CHECK(says(a.notes, " were tried, those first whose bugs alone come nearest"));
  few.threads = 5;
  CHECK(diagnose(capture, few).notes == a.notes);
}

TEST_CASE("where the result moves, it is said where the recorded run is wrong") {
  const BuggyCase c = buggy_case();
  Capture capture = changed(c, Tensor::kO, [](double x, std::int64_t i) {
    return i % 16 >= 8 ? x + 0.01 * static_cast<double>(i % 13 + 5) : x;
  });
  capture.repetition.runs = 2;
  capture.repetition.first = Repetition::Cell{Tensor::kO, {}, 0, 1};
  const Diagnosis d = diagnose(capture, {});
  CHECK(d.verdict == DiagnosisVerdict::kNotAFormula);
  CHECK(says(d.residual, "wrong where dim is 8-15, right elsewhere: 100% of 3,072 wrong cells"));
  CHECK(says(d.residual, "this is of the run that was recorded: others differ"));
}

TEST_CASE("what has no name is described inside blocks") {
  const BuggyCase c = buggy_case();
  DiagnoseOptions options;
  options.pairs = false;
  const Diagnosis d =
      diagnose(changed(c, Tensor::kO,
                       [&](double x, std::int64_t i) {
                         const std::int64_t q = i / 16 % 96, dim = i % 16;
                         return q % 8 == 5 && dim % 8 / 2 == 1 ? x + 0.01 * (i % 13 + 5) : x;
                       }),
               options);
  CHECK_FALSE(answered(d));
  CHECK(says(d.residual,
             "wrong where q mod 8 is 5 and dim mod 8 is 2-3 (what lane 21 holds of an mma.m16n8 "
             "accumulator), right elsewhere: 100% of 192 wrong cells, 0 of 5,952 right ones"));
}

}  // namespace attn_diag

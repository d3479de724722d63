#include "attn_diag/harness/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/reference/reference.h"
#include "harness/compare/compare_and_visit.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/fake_kernels.h"
#include "harness/trace/wrong_cells.h"

namespace attn_diag {
namespace {

TraceResult trace_fake(const std::string& kernel, const TraceOptions& options = {},
                       const Problem& problem = fake_problem(), const RunOptions& run = {}) {
  return trace({fake_kernel(kernel), problem, make_inputs(problem, "randn", 1, 1.0), run}, options);
}

Verdict prefix(const TraceResult& r, Stage s) {
  return r.stages[static_cast<std::size_t>(s)].verdict;
}
Verdict isolated(const TraceResult& r, Stage s) {
  return r.stages[static_cast<std::size_t>(s)].isolated;
}

bool any_contains(const std::vector<std::string>& notes, const std::string& text) {
  for (const std::string& note : notes)
    if (note.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("a right kernel agrees in every stage, fed by itself and by the reference") {
  const TraceResult r = trace_fake("right");
  CHECK(r.agrees());
  CHECK_FALSE(r.first.has_value());
  CHECK(r.pattern.empty());
  REQUIRE(r.stages.size() == 4);
  for (const StageReport& stage : r.stages) {
    INFO(name(stage.stage));
    CHECK(stage.verdict == Verdict::kAgrees);
    CHECK(stage.isolated == Verdict::kAgrees);
  }
  CHECK(r.observer_checked);
  CHECK(r.observer_identical);
  CHECK(r.production.agrees());
  CHECK(r.schedules == ScheduleFinding::kSame);
  CHECK_FALSE(r.closure.has_value());
}

TEST_CASE("cells that NaN among the inputs leaves without a bound are not judged, and said to be") {
  Problem p = fake_problem();
  InputData inputs = make_inputs(p, "randn", 1, 1.0);
  store_element(inputs.k.edit().data(), p.dtype, 3, std::nan(""));
  inputs.has_nonfinite = true;
  // The kernel's max passes over NaN; the reference's does not. Neither is wrong.
  const TraceResult r = trace({fake_kernel("right"), p, inputs}, {});
  CHECK(r.agrees());
  CHECK(any_contains(r.notes, "elements of m are not judged"));
  CHECK(any_contains(r.capture.notes, "NaN"));
  // What NaN does not reach is judged as ever.
  CHECK_FALSE(trace({fake_kernel("divides-twice"), p, inputs}, {}).agrees());
}

TEST_CASE("a reduce that divides by l twice is found at the first query with l != 1") {
  const TraceResult r = trace_fake("divides-twice");
  CHECK_FALSE(r.agrees());
  REQUIRE(r.first.has_value());
  CHECK(r.first->stage == Stage::kReduce);
  CHECK(r.first->tensor == Tensor::kO);
  CHECK(r.first->head == 0);
  CHECK(r.first->query == 1);  // query 0 sees one key: l = 1
  CHECK(r.first->query_tile == 0);
  CHECK(r.first->kv_tile == 0);  // the only one that query 1 sees
  CHECK_FALSE(r.first->key.has_value());
  CHECK(r.first->dim == 0);
  CHECK_FALSE(r.first->writes.has_value());
  CHECK(std::abs(r.first->actual - r.first->expected) > r.first->bound);
  for (const Stage s : {Stage::kQk, Stage::kSoftmax, Stage::kPv}) {
    CHECK(prefix(r, s) == Verdict::kAgrees);
    CHECK(isolated(r, s) == Verdict::kAgrees);
  }
  CHECK(prefix(r, Stage::kReduce) == Verdict::kDiverges);
  CHECK(isolated(r, Stage::kReduce) == Verdict::kDiverges);
  CHECK_FALSE(r.second_fault);
  std::string pattern;
  for (const PatternStatement& s : r.pattern) pattern += s.text + "\n";
  CHECK_THAT(pattern, contains("query 0 is exact") && contains("factor of l") &&
                          contains("in each row actual = g * expected"));
}

TEST_CASE("a wrong S makes later stages diverge, but isolation acquits them") {
  const TraceResult r = trace_fake("scale-twice");
  REQUIRE(r.first.has_value());
  CHECK(r.first->stage == Stage::kQk);
  CHECK(r.first->tensor == Tensor::kS);
  CHECK(r.first->head == 1);
  CHECK(r.first->query == 0);
  CHECK(r.first->key == 0);
  CHECK(r.first->kv_tile == 0);
  CHECK(prefix(r, Stage::kReduce) == Verdict::kDiverges);
  CHECK(isolated(r, Stage::kQk) == Verdict::kDiverges);
  for (const Stage s : {Stage::kSoftmax, Stage::kPv, Stage::kReduce})
    CHECK(isolated(r, s) == Verdict::kAgrees);
  REQUIRE(r.closure.has_value());
  CHECK_FALSE(r.second_fault);
  std::string pattern;
  for (const PatternStatement& s : r.pattern) pattern += s.text + "\n";
  CHECK_THAT(pattern, contains("actual = 0.3536 * expected throughout") &&
                          contains("fits a scale applied twice"));
}

TEST_CASE("cells that are a little wrong are no factor of the whole row") {
  const TraceResult r = trace_fake("one-key-a-little");
  REQUIRE(r.first.has_value());
  CHECK(r.first->tensor == Tensor::kS);
  for (const PatternStatement& s : r.pattern) CHECK_THAT(s.text, !contains("actual ="));
}

TEST_CASE("closure finds the second of two faults") {
  const TraceResult r = trace_fake("two-faults");
  REQUIRE(r.first.has_value());
  CHECK(r.first->tensor == Tensor::kS);
  CHECK(r.first->query == 2);
  CHECK(r.first->key == 1);
  CHECK(r.second_fault);
  CHECK(isolated(r, Stage::kSoftmax) == Verdict::kAgrees);
  CHECK(isolated(r, Stage::kReduce) == Verdict::kDiverges);
}

TEST_CASE("a cell never visited is a divergence of its stage") {
  const TraceResult r = trace_fake("skips-cell");
  CHECK_FALSE(r.agrees());
  REQUIRE(r.first.has_value());
  CHECK(r.first->tensor == Tensor::kS);
  CHECK(r.first->writes == 0);
  CHECK(r.first->query == 2);
  CHECK(r.first->key == 1);
  CHECK(prefix(r, Stage::kQk) == Verdict::kDiverges);
  CHECK(prefix(r, Stage::kSoftmax) == Verdict::kAgrees);
  CHECK(prefix(r, Stage::kReduce) == Verdict::kDiverges);  // o has the hole too
  CHECK_FALSE(r.closure.has_value());
  CHECK(any_contains(r.notes, "S has cells that the kernel never visits"));
}

TEST_CASE("a cell visited twice is a divergence though its value is right") {
  const TraceResult r = trace_fake("visits-twice");
  CHECK_FALSE(r.agrees());
  REQUIRE(r.first.has_value());
  CHECK(r.first->tensor == Tensor::kS);
  CHECK(r.first->writes == 2);
  CHECK(r.first->head == 1);
  CHECK(r.first->query == 1);
  CHECK(r.stages[0].prefix.agrees());
}

TEST_CASE("a kernel that is right only with taps is caught by the observer check") {
  const TraceResult r = trace_fake("disturbed-by-taps");
  CHECK_FALSE(r.agrees());
  CHECK(r.observer_checked);
  CHECK_FALSE(r.observer_identical);
  CHECK(r.observer_differing > 0);
  for (const StageReport& stage : r.stages) CHECK(stage.verdict == Verdict::kAgrees);
  REQUIRE(r.first.has_value());
  CHECK(r.first->tensor == Tensor::kO);
  CHECK(r.first->query == 1);
  CHECK(any_contains(r.notes, "Only the production kernel diverges"));
}

TEST_CASE("a stage that diverges only when fed right inputs is a divergence all the same") {
  Problem p = fake_problem();
  p.softmax_scale = 4.0f;  // large scores: what S may be off by hides an imprecise exp
  const TraceResult r = trace_fake("imprecise-exp", {}, p);
  for (const StageReport& stage : r.stages) CHECK(stage.verdict == Verdict::kAgrees);
  CHECK(isolated(r, Stage::kQk) == Verdict::kAgrees);
  CHECK(isolated(r, Stage::kSoftmax) == Verdict::kDiverges);
  CHECK_FALSE(r.agrees());
  REQUIRE(r.first.has_value());
  CHECK(r.first->tensor == Tensor::kP);
  CHECK(r.first->stage == Stage::kSoftmax);
  CHECK(any_contains(r.notes, "Only fed the reference's inputs does a stage diverge"));
}

TEST_CASE("two runs that differ are a finding even if the first one is right") {
  const TraceResult r = trace_fake("unsteady");
  CHECK_FALSE(r.agrees());
  CHECK(r.schedules == ScheduleFinding::kOrderDependent);
  CHECK_THAT(r.schedules_detail, contains("Two runs under the same schedule differ"));
  CHECK(r.sanity.finding == SanityFinding::kMoves);
  CHECK(r.sanity.culprits.empty());  // whatever moves by itself says nothing of any memory
  CHECK_FALSE(r.sanity.within_bounds);
}

TEST_CASE("no memory is blamed where runs on the same bytes differ") {
  const TraceResult r = trace_fake("seldom-unsteady");
  CHECK_FALSE(r.agrees());
  CHECK(r.sanity.finding == SanityFinding::kMoves);
  CHECK(r.sanity.culprits.empty());
}

TEST_CASE("two runs that differ by less than rounding agree, and are said to differ") {
  const TraceResult r = trace_fake("unsteady-rounding");
  CHECK(r.agrees());
  CHECK_FALSE(r.latent());
  CHECK(r.sanity.finding == SanityFinding::kMoves);
  CHECK(r.sanity.within_bounds);
  CHECK_FALSE(r.first.has_value());
}

TEST_CASE("a right kernel and a wrong one whose result stays are steady, in three more runs") {
  for (const char* kernel : {"right", "divides-twice", "skips-cell"}) {
    INFO(kernel);
    const TraceResult r = trace_fake(kernel);
    CHECK(r.sanity.finding == SanityFinding::kSteady);
    CHECK(r.sanity.runs == 3);
    CHECK(r.sanity.culprits.empty());
  }
}

TEST_CASE("a result that depends on unwritten memory names that memory, and no other") {
  const std::pair<const char*, GivenMemory> flaws[] = {{"reads-workspace", GivenMemory::kWorkspace},
                                                       {"reads-padding", GivenMemory::kAroundV},
                                                       {"adds-to-o", GivenMemory::kOutput}};
  for (const auto& [kernel, memory] : flaws) {
    INFO(kernel);
    const TraceResult r = trace_fake(kernel);
    CHECK_FALSE(r.agrees());
    CHECK(r.sanity.finding == SanityFinding::kReadsUnwritten);
    CHECK(r.latent());  // all three are right on zeros, or on any numbers
    REQUIRE(r.sanity.culprits.size() == 1);
    CHECK(r.sanity.culprits[0].memory == memory);
    REQUIRE(r.sanity.culprits[0].first.has_value());
    CHECK(r.sanity.culprits[0].first->tensor == Tensor::kO);
    CHECK(r.schedules == ScheduleFinding::kSame);
  }
}

TEST_CASE("what is wrong even where the result holds still is looked at there") {
  const TraceResult r = trace_fake("reads-workspace-and-divides-twice");
  CHECK_FALSE(r.agrees());
  CHECK_FALSE(r.latent());
  CHECK(r.sanity.finding == SanityFinding::kReadsUnwritten);
  CHECK(r.sanity.on_gpu == OnGpu::kWrong);
  CHECK(r.calmly == "with zeros in the workspace");
  REQUIRE(r.first.has_value());
  CHECK(r.first->query == 1);  // as of divides-twice; NaN from the workspace is in query 2 alone
  CHECK(prefix(r, Stage::kPv) == Verdict::kAgrees);
  CHECK(isolated(r, Stage::kReduce) == Verdict::kDiverges);
}

TEST_CASE("a wrong kernel whose bits move by less than rounding is hunted as if they did not") {
  const TraceResult r = trace_fake("unsteady-rounding-and-divides-twice");
  CHECK_FALSE(r.agrees());
  CHECK(r.sanity.moved());
  CHECK_FALSE(r.sanity.unsound());
  REQUIRE(r.first.has_value());
  CHECK(r.first->stage == Stage::kReduce);
  CHECK(r.calmly.empty());
}

TEST_CASE("gate 0 runs as often as it is asked to, or not at all") {
  TraceOptions options;
  options.sanity_runs = 5;
  CHECK(trace_fake("right", options).sanity.runs == 5);
  options.sanity_runs = 0;
  const TraceResult r = trace_fake("reads-workspace", options);
  CHECK(r.sanity.finding == SanityFinding::kNotChecked);
  CHECK(r.schedules == ScheduleFinding::kNotChecked);
}

TEST_CASE("a kernel without taps is traced as a black box: exempt stages, outputs compared") {
  const TraceResult r = trace_fake("no-taps");
  CHECK(r.agrees());
  for (const Stage s : {Stage::kQk, Stage::kSoftmax, Stage::kPv}) {
    CHECK(prefix(r, s) == Verdict::kExempt);
    CHECK_THAT(r.stages[static_cast<std::size_t>(s)].exempt_reason, contains("built without taps"));
  }
  CHECK(prefix(r, Stage::kReduce) == Verdict::kAgrees);
  CHECK_FALSE(r.observer_checked);
}

TEST_CASE("a stage whose input cannot be fed is exempt from isolation, not from the prefix run") {
  const TraceResult r = trace_fake("exempt-p");
  CHECK(r.agrees());
  CHECK(prefix(r, Stage::kSoftmax) == Verdict::kAgrees);
  CHECK_THAT(r.stages[1].exempt_reason, contains("P: kept in registers"));
  CHECK(isolated(r, Stage::kPv) == Verdict::kExempt);
  CHECK(isolated(r, Stage::kReduce) == Verdict::kAgrees);
}

TEST_CASE("stages behind the gate are not reached, and that is no divergence") {
  RunOptions run;
  run.gate = Gate::kQk;
  const TraceResult r = trace_fake("right", {}, fake_problem(), run);
  CHECK(r.agrees());
  CHECK(prefix(r, Stage::kQk) == Verdict::kAgrees);
  CHECK(prefix(r, Stage::kReduce) == Verdict::kNotReached);
  CHECK(isolated(r, Stage::kReduce) == Verdict::kNotReached);
}

TEST_CASE("a fault the inputs cannot show is reported as agreeing") {
  Problem p = fake_problem();
  p.seqlen_q = p.seqlen_k = 1;  // l = 1
  CHECK(trace_fake("divides-twice", {}, p).agrees());
}

TEST_CASE("a run that cannot be made is an error, never a verdict") {
  CHECK_THROWS_AS(trace_fake("refuses-to-launch"), Error);
  CHECK_THROWS_AS(trace_fake("writes-outside"), Error);
}

TEST_CASE("a trace announces each of its steps") {
  TraceOptions options;
  std::vector<int> steps;
  int announced = 0;
  options.on_step = [&](int step, int of, const std::string& what) {
    steps.push_back(step);
    announced = of;
    CHECK_FALSE(what.empty());
  };
  trace_fake("scale-twice", options);
  CHECK(steps == std::vector<int>{1, 2, 3, 4, 5, 6, 7});
  CHECK(announced == 7);

  options.lines = LinesWanted::kNever;
  steps.clear();
  trace_fake("scale-twice", options);
  CHECK(steps == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(announced == 5);
}

TEST_CASE(
    "a diverging trace works the reference out once, and once more for each run of fed stages") {
  // No more passes for the production kernel, its runs in other orders, what is fed to stages, or the pattern.
  const auto passes = [](const std::string& kernel, bool isolate, bool closure) {
    TraceOptions options;
    options.isolate = isolate;
    options.closure = closure;
    options.lines = LinesWanted::kNever;
    const std::int64_t before = reference::rows_computed();
    const TraceResult r = trace_fake(kernel, options);
    CHECK(r.first.has_value());
    CHECK_FALSE(r.pattern.empty());
    CHECK(r.production.answer() == Answer::kDiverges);
    const Problem p = fake_problem();
    const std::int64_t rows = std::int64_t{p.heads} * p.seqlen_q;
    CHECK((reference::rows_computed() - before) % rows == 0);
    return (reference::rows_computed() - before) / rows;
  };
  CHECK(passes("scale-twice", false, false) == 1);
  CHECK(passes("scale-twice", true, false) == 2);
  CHECK(passes("scale-twice", true, true) == 3);
  CHECK(passes("divides-twice", true, true) == 2);  // nothing comes after the last stage
}

TEST_CASE("the wrong cells of a trace's pattern are those of a pass of their own") {
  Problem p = fake_problem();
  p.batch = 3;  // more blocks than one with wrong cells
  const Experiment experiment{fake_kernel("scale-twice"), p, make_inputs(p, "randn", 1, 1.0)};
  const Capture c = run_kernel(experiment);
  FirstWrongCells wrong(c, {});
  BlockVisitors visitors;
  visitors.wrong = [&](const reference::RowBlock& block, Tensor t) { wrong.take(block, t); };
  compare_and_visit(c, {}, 1, visitors);
  const std::optional<WrongCells> found = wrong.finish();
  REQUIRE(found.has_value());
  CHECK(found->tensor == Tensor::kS);
  const WrongCells expected = collect_wrong_cells(c, Tensor::kS, {});
  CHECK(found->compared == expected.compared);
  CHECK(found->mismatched == expected.mismatched);
  CHECK(found->mismatched > 0);
  CHECK(found->by_axis == expected.by_axis);
  CHECK(found->by_tile == expected.by_tile);
  CHECK(found->by_diagonal == expected.by_diagonal);
  CHECK(found->rows == expected.rows);
  CHECK(found->rows_explained == expected.rows_explained);
  CHECK(found->min_factor == expected.min_factor);
  CHECK(found->max_factor == expected.max_factor);
}

TEST_CASE("a region is traced with absolute coordinates") {
  RunOptions run;
  run.region = {{0, 1, 4}, {1, 1, 2}};
  const TraceResult r = trace_fake("divides-twice", {}, fake_problem(), run);
  REQUIRE(r.first.has_value());
  CHECK(r.first->head == 1);
  CHECK(r.first->query == 4);
  CHECK(r.first->query_tile == 1);
  CHECK_FALSE(r.first->kv_tile.has_value());  // query 4 sees two
}

}  // namespace attn_diag

#include "attn_diag/harness/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "attn_diag/harness/check_kernel.h"
#include "attn_diag/harness/plan.h"
#include "harness/compare/compare_and_visit.h"
#include "harness/run/repetition.h"
#include "harness/run/replacements.h"
#include "harness/run/run_plan.h"
#include "harness/trace/blind_spots.h"
#include "harness/trace/check_sanity.h"
#include "harness/trace/find_first_divergence.h"
#include "harness/trace/wrong_cells.h"

namespace attn_diag {
namespace {

// The verdict of a stage in which nothing is wrong.
Verdict verdict_of(const Comparison& stage) {
  return stage.agrees() ? Verdict::kAgrees : Verdict::kNotJudged;
}

std::string place_of(const host::CheckAccess& access) {
  if (access.places.empty()) return access.symbol;
  const host::SourcePlace& place = access.places.front();
  return fmt::format("{}:{}", place.file.substr(place.file.rfind('/') + 1), place.line);
}

// A run and how it compares with the reference.
struct Look {
  Capture capture;
  Comparison comparison{};
  std::optional<WrongCells> wrong{};  // of the tensor that diverges first
};

class Tracer {
 public:
  Tracer(const Experiment& experiment, const TraceOptions& options)
      : x_given(experiment), x_options(options) {
    const Kernel& kernel = experiment.kernel;
    x_run = experiment.run;
    x_run.isolate = false;
    x_run.replace = 0;
    // A kernel built without taps is traced as a black box: its outputs are all there is to see.
    x_run.taps = has_gate(kernel.info(), x_run.gate) && x_run.gate != Gate::kFull;
    x_geometry = plan_geometry(kernel, experiment.problem, x_run);
    x_steps = 1 + (options.observer || options.schedules) + (sanity_runs() > 0) +
              (options.isolate && x_run.taps) + (options.closure && x_run.taps) +
              may_watch_memory() + may_trace_lines();
  }

  TraceResult trace() {
    std::optional<Look> production = run_production();
    step("running every stage");
    Look prefix = run_as(x_run);
    compare(prefix);
    // First, whether there is a result at all: what moves is no matter of stages and formulas.
    if (production) look_at_production(*production);
    note_moves(prefix, "With taps on");
    if (may_watch_memory()) watch_memory();
    const bool race = tell_of_racing_blocks(prefix);
    if (production) compare_with_production(*production, prefix);
    if (!race) look_where_it_holds_still(prefix);
    report_stages(prefix);
    use(finding_in(prefix), "");
    if (x_options.isolate && x_run.taps) isolate();
    if (x_options.closure && x_run.taps) close(prefix.capture);
    if (!race) report_moves();
    for (const std::string& note : prefix.comparison.notes) x_result.notes.push_back(note);
    use(std::move(x_in_production),
        "Only the production kernel diverges: with taps on, every stage agrees, so the taps "
        "disturb "
        "what they look at.");
    use(std::move(x_in_isolation),
        "Only fed the reference's inputs does a stage diverge: in the whole pipeline, what the "
        "stages "
        "before it may round hides that.");
    if (std::string unseen = describe_blind_spots(x_given.problem, x_geometry);
        !x_result.first && !unseen.empty())
      x_result.notes.push_back(std::move(unseen));
    const bool is_right = !x_result.first && !x_result.sanity.unsound();
    if (x_checked && is_right) {
      x_result.memory_errors = found(host::Severity::kError);
      note_latent_findings();
    }
    const bool finds = x_result.memory_errors.value_or(0) > 0;
    if (may_trace_lines() && (x_options.lines == LinesWanted::kAlways || !is_right || finds)) {
      step("tracing where numbers come from, line by line");
      RunOptions run = x_given.run;
      run.schedule = x_run.schedule;
      run.fill = x_run.fill;
      // A result that moves comes first: its numbers say where it shows, not where it is from.
      const bool moves = (x_result.sanity.unsound() && x_result.calmly.empty()) || finds;
      const bool was_checked = x_checked && run.schedule == x_given.run.schedule;
      x_result.lines = trace_lines(x_given.with(run),
                                   moves      ? LinesBy::kChecker
                                   : is_right ? LinesBy::kNumbersOfRight
                                              : LinesBy::kNumbers,
                                   was_checked ? &*x_checked : nullptr);
    }
    x_result.capture = std::move(prefix.capture);
    if (!x_input_writes.empty()) x_result.capture.input_writes = std::move(x_input_writes);
    return std::move(x_result);
  }

  // The lines of a refused run.
  LineDivergence lines_of_fault() {
    step("tracing what stopped it, line by line");
    return trace_lines(x_given, LinesBy::kChecker);
  }

  // Lines are traced in host builds alone.
  bool may_trace_lines() const {
    return x_options.lines != LinesWanted::kNever &&
           std::string_view(x_given.kernel.build().backend) == "host";
  }

 private:
  // The checker takes less time than what ran before it.
  bool may_watch_memory() const {
    return may_trace_lines() && sanity_runs() > 0 && last_stage(x_run.gate) == Stage::kReduce;
  }

  // What agrees may touch what is not its own: the values were right by luck, or nobody used them.
  void watch_memory() {
    step("watching what the production kernel loads and stores");
    try {
      x_checked = check_kernel(x_given.with(without_taps()), {});
      x_result.sanity.checked = what_check_finds(x_checked->report.findings);
    } catch (const Error&) {  // as where there is no build for it: check says that itself
    }
  }

  static Sanity::Checked what_check_finds(const std::vector<host::CheckFinding>& findings) {
    using host::CheckKind;
    Sanity::Checked out;
    for (const host::CheckFinding& one : findings) {
      if (one.severity == host::Severity::kBenign) continue;
      if (one.kind == CheckKind::kRace || one.kind == CheckKind::kMissingFence)
        out.race = true;
      else if (one.kind == CheckKind::kAsyncCopy)
        out.early_copy = true;
      else if (one.kind == CheckKind::kUninitialisedRead)
        out.unwritten = true;
      else if (out.other.empty())
        out.other = one.message.substr(0, one.message.find_last_not_of('.') + 1);
    }
    return out;
  }

  std::int64_t found(host::Severity severity) const {
    const std::vector<host::CheckFinding>& findings = x_checked->report.findings;
    return std::count_if(findings.begin(), findings.end(),
                         [&](const auto& one) { return one.severity == severity; });
  }

  // Of what agrees and has no errors: what no schedule here gets wrong, and a GPU may.
  void note_latent_findings() {
    const std::int64_t latent = found(host::Severity::kLatent);
    if (latent == 0 || found(host::Severity::kError) > 0) return;
    const host::CheckFinding& first = x_checked->report.findings.front();  // errors would be first
    x_result.notes.push_back(fmt::format(
        "attn-diag check finds what is right only as long as a warp stays converged, or orders "
        "memory where CUDA does not promise it: {} at {}{}.",
        host::name(first.kind), place_of(first.access),
        latent > 1 ? fmt::format(", and {} more", latent - 1) : ""));
  }

  // A race of blocks shows in some runs and not in others: the answer is the same in all. Returns whether it is this.
  bool tell_of_racing_blocks(const Look& prefix) {
    if (!x_checked || !prefix.capture.input_writes.empty()) return false;
    const std::vector<host::CheckFinding>& findings = x_checked->report.findings;
    // Blocks that store the same cells of the outputs and always give the same wrong result: a matter of indices.
    const bool wrong_and_steady = !x_result.sanity.unsound() && x_moved.empty() &&
                                  find_first_divergence(prefix.capture, prefix.comparison);
    const auto race = std::find_if(findings.begin(), findings.end(), [&](const auto& one) {
      return one.kind == host::CheckKind::kRace && one.severity == host::Severity::kError &&
             one.has_other && one.access.block != one.other.block &&
             !(wrong_and_steady && one.access.write && one.other.write);
    });
    if (race == findings.end()) return false;
    const int runs = x_result.sanity.runs;
    x_result.sanity = {};
    x_result.sanity.runs = runs;
    x_result.sanity.finding = SanityFinding::kBlocksRace;
    x_result.sanity.detail = fmt::format(
        "Threads of two blocks access the same bytes of {}, with nothing to order them, at {} and "
        "{}. What one run gives, right or wrong, says nothing of the next.",
        race->array.empty() ? "memory" : race->array, place_of(race->other),
        place_of(race->access));
    x_result.schedules = ScheduleFinding::kOrderDependent;
    x_result.schedules_detail.clear();
    x_wrong_under.clear();
    return true;
  }

  void step(const std::string& what) {
    ++x_step;
    if (x_options.on_step) x_options.on_step(x_step, x_steps, what);
  }

  Look look(const RunOptions& run, const char* how) {
    Look out = run_as(run);
    compare(out);
    note_moves(out, how);
    return out;
  }

  Look run_as(const RunOptions& run) const {
    return {run_kernel(x_given.with(run), x_replacements)};
  }

  // On a GPU a run is two.
  void note_moves(const Look& look, const char* how) {
    const Repetition& repetition = look.capture.repetition;
    if (!repetition.moved()) return;
    x_moved += fmt::format(" {}: {}", how, repetition_text(repetition));
    x_moves_within_bounds &= near_each_other(look.capture, *repetition.second, x_given.tolerance) &&
                             agrees_every_time(look) == look.comparison.agrees();
  }

  // Compares in one pass of the reference. The same pass finds which cells of the first bad tensor are wrong, fills what
  // is fed to stages later, and keeps o and lse, with which runs without taps are compared.
  void compare(Look& look) {
    FirstWrongCells wrong(look.capture, x_given.tolerance);
    const std::shared_ptr<Replacements> values = replacements_to_fill(look.capture);
    BlockVisitors visitors;
    visitors.wrong = [&](const reference::RowBlock& block, Tensor t) { wrong.take(block, t); };
    if (values) visitors.every = [&](const reference::RowBlock& block) { values->take(block); };
    look.comparison = compare_and_visit(look.capture, x_given.tolerance, x_run.threads, visitors);
    if (values && values->complete()) x_replacements = values;
    look.wrong = wrong.finish();
  }

  // Null where nothing will be fed, or the capture lacks some of it.
  std::shared_ptr<Replacements> replacements_to_fill(const Capture& capture) const {
    RunOptions fed = x_run;
    fed.isolate = true;
    const std::uint32_t tensors = x_run.taps && (x_options.isolate || x_options.closure)
                                      ? replaced_tensors(x_given.kernel, x_geometry, fed)
                                      : 0;
    const bool all_there = std::all_of(kTensors.begin(), kTensors.end(), [&](const TensorInfo& t) {
      return (tensors & tensor_bit(t.id)) == 0 || capture.has(t.id);
    });
    if (x_replacements || tensors == 0 || !all_there) return nullptr;
    return std::make_shared<Replacements>(capture, tensors);
  }

  bool agrees_every_time(const Look& look) const {
    return every_run_agrees(look.capture, look.comparison, x_given.tolerance, x_run.threads);
  }

  // A result that differs from run to run by more than rounding is no agreement.
  void report_moves() {
    if (x_moved.empty()) return;
    x_result.sanity.within_bounds =
        x_moves_within_bounds && (!x_result.sanity.moved() || x_result.sanity.within_bounds);
    x_result.schedules = ScheduleFinding::kOrderDependent;
    x_result.sanity.finding = SanityFinding::kMoves;
    x_moved.erase(0, 1);  // the blank before the first sentence
    x_result.sanity.detail = x_moved;
    if (!x_result.schedules_detail.empty()) x_result.schedules_detail += ' ';
    x_result.schedules_detail += x_moved;
  }

  // Where a run first diverges, and how it looks.
  struct Located {
    std::optional<FirstDivergence> first;
    std::vector<PatternStatement> pattern;
  };
  Located finding_in(const Look& look) const { return finding_in(look, look.comparison); }
  // `part`: of the look's comparison.
  Located finding_in(const Look& look, const Comparison& part) const {
    Located out;
    out.first = find_first_divergence(look.capture, part);
    if (out.first) out.pattern = pattern_in(look, out.first->tensor);
    return out;
  }
  std::vector<PatternStatement> pattern_in(const Look& look, Tensor tensor) const {
    if (look.wrong && look.wrong->tensor == tensor)
      return describe_pattern(*look.wrong, x_given.problem, x_geometry);
    return describe_pattern(
        collect_wrong_cells(look.capture, tensor, x_given.tolerance, x_run.threads),
        x_given.problem, x_geometry);
  }

  // Makes it the trace's finding, with a note on where it is from, if there is none yet.
  void use(Located finding, const std::string& note) {
    if (x_result.first || !finding.first) return;
    x_result.first = finding.first;
    x_result.pattern = std::move(finding.pattern);
    if (!note.empty()) x_result.notes.push_back(note);
  }

  int sanity_runs() const {
    if (!x_options.schedules) return 0;
    const bool on_gpu = std::string_view(x_given.kernel.build().backend) == "cuda";
    return x_options.sanity_runs >= 0 ? x_options.sanity_runs : on_gpu ? 4 : 3;
  }

  RunOptions without_taps() const {
    RunOptions run = x_run;
    run.taps = false;
    return run;
  }

  std::optional<Look> run_production() {
    if (!x_options.observer && !x_options.schedules) return std::nullopt;
    step("running the production kernel, without taps");
    return run_as(without_taps());
  }

  // The kernel without taps: is it right, and is it the same again?
  void look_at_production(Look& production) {
    compare(production);
    note_moves(production, "Without taps");
    x_result.production = production.comparison;
    x_input_writes = production.capture.input_writes;
    x_in_production = finding_in(production);
    if (sanity_runs() == 0) return;
    step("running the production kernel again, in other orders and on other unwritten bytes");
    const bool right = agrees_every_time(production) && !x_in_production.first;
    SanityCheck check =
        check_sanity(x_given.with(without_taps()), production.capture, right, sanity_runs());
    x_result.sanity = std::move(check.sanity);
    x_result.schedules = check.schedules.finding;
    x_result.schedules_detail = check.schedules.detail;
    x_wrong_under = check.schedules.wrong_under;
  }

  // Do the taps disturb? And where only another schedule goes wrong, the stages are looked at under that
  // one.
  void compare_with_production(const Look& production, Look& prefix) {
    if (x_options.observer && x_run.taps && last_stage(x_run.gate) == Stage::kReduce) {
      x_result.observer_checked = true;
      x_result.observer_differing = moved_outputs(production.capture, prefix.capture).moved_cells();
      x_result.observer_identical = x_result.observer_differing == 0;
    }
    if (x_wrong_under.empty() || find_first_divergence(prefix.capture, prefix.comparison)) return;
    RunOptions run = x_run;
    run.schedule = x_wrong_under;
    Look other = look(run, "With taps on");
    if (!find_first_divergence(other.capture, other.comparison)) return;
    x_result.notes.push_back(
        fmt::format("The stages are shown under schedule {}: under {} they all agree.",
                    run.schedule, x_run.schedule));
    x_run.schedule = run.schedule;
    prefix = std::move(other);
  }

  // What moves must not silence what else is wrong: where the result holds still and a stage diverges all the
  // same, the stages are looked at there.
  void look_where_it_holds_still(Look& prefix) {
    if (!x_result.sanity.unsound() || !x_result.sanity.calm) return;
    const Sanity::Calm& calm = *x_result.sanity.calm;
    RunOptions run = x_run;
    run.schedule = calm.schedule;
    run.fill = calm.fill;
    Look other = look(run, "With taps on");
    Located found_in_production;
    if (!calm.right) {
      run.taps = false;
      Look production = look(run, "Without taps");
      found_in_production = finding_in(production);
      run.taps = x_run.taps;
      x_result.production = production.comparison;
      if (x_result.observer_checked) {
        x_result.observer_differing =
            moved_outputs(production.capture, other.capture).moved_cells();
        x_result.observer_identical = x_result.observer_differing == 0;
      }
    } else if (!find_first_divergence(other.capture, other.comparison)) {
      return;  // nothing else is wrong
    }
    x_result.calmly = calm.text;
    x_in_production = std::move(found_in_production);
    x_run = run;
    prefix = std::move(other);
  }

  void report_stages(const Look& prefix) {
    for (int s = 0; s < kNumStages; ++s) {
      StageReport report;
      report.stage = static_cast<Stage>(s);
      report.prefix = of_stage(prefix.comparison, report.stage);
      report.exempt_reason = exempt_reason(report.stage, prefix.capture);
      if (report.stage > last_stage(x_run.gate)) {
        report.verdict = Verdict::kNotReached;
      } else if (stage_diverges(report.stage, prefix.capture, prefix.comparison)) {
        report.verdict = Verdict::kDiverges;
      } else if (!report.prefix.tensors.empty()) {
        report.verdict = verdict_of(report.prefix);
      } else if (!report.exempt_reason.empty()) {
        report.verdict = Verdict::kExempt;
      }
      x_result.stages.push_back(std::move(report));
    }
  }

  // "P: kept in registers of the tensor core; l: ..."
  static std::string exempt_reason(Stage stage, const Capture& capture) {
    std::string text;
    for (const TensorInfo& tensor : kTensors) {
      const std::string& reason = capture.exempt[static_cast<std::size_t>(tensor.id)];
      if (tensor.stage != stage || reason.empty()) continue;
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", tensor.name, reason);
    }
    return text;
  }

  void isolate() {
    step("running every stage on the reference's inputs");
    RunOptions run = x_run;
    run.isolate = true;
    const std::uint32_t fed = replaced_tensors(x_given.kernel, x_geometry, run);
    if (fed == 0) {  // stages are recorded only
      for (StageReport& report : x_result.stages)
        report.isolated =
            report.verdict == Verdict::kNotReached ? Verdict::kNotReached : Verdict::kExempt;
      return;
    }
    const Look isolated = look(run, "Fed the reference's inputs");
    for (StageReport& report : x_result.stages) {
      if (report.verdict == Verdict::kNotReached) {
        report.isolated = Verdict::kNotReached;
        continue;
      }
      // Without taps on its inputs a stage cannot be fed.
      if (report.verdict == Verdict::kExempt ||
          (info(report.stage).inputs & fed) != info(report.stage).inputs) {
        report.isolated = Verdict::kExempt;
        continue;
      }
      report.isolation = of_stage(isolated.comparison, report.stage);
      report.isolated = stage_diverges(report.stage, isolated.capture, isolated.comparison)
                            ? Verdict::kDiverges
                        : report.isolation.tensors.empty() ? Verdict::kNotRun
                                                           : verdict_of(report.isolation);
      if (report.isolated == Verdict::kDiverges && !x_result.first && !x_in_isolation.first)
        x_in_isolation = finding_in(isolated, report.isolation);
    }
  }

  // Corrects every stage up to the first bad one and looks whether a later one goes wrong too. The
  // stages before it are fed as well, so that all of them are in one frame.
  void close(const Capture& prefix) {
    step("injecting the correct output of the first bad stage");
    if (!x_result.first || x_result.first->stage >= last_stage(x_run.gate)) return;
    const Stage bad = x_result.first->stage;
    std::uint32_t inject = 0;
    for (const TensorInfo& tensor : kTensors) {
      if (tensor.stage > bad) continue;
      if (prefix.coverage[static_cast<std::size_t>(tensor.id)].never > 0) {
        x_result.notes.push_back(fmt::format(
            "Whether a later stage is at fault too was not checked: {} has cells that the kernel "
            "never visits, and values cannot be injected there.",
            tensor.name));
        return;
      }
      inject |= tensor_bit(tensor.id);
    }
    RunOptions run = x_run;
    run.replace = inject;
    if (replaced_tensors(x_given.kernel, x_geometry, run) == 0) {
      x_result.notes.emplace_back(
          "Whether a later stage is at fault too was not checked: the kernel's stages are recorded "
          "only, nothing can be injected.");
      return;
    }
    const Look closed = look(run, "With the first bad stage repaired");
    x_result.closure = closed.comparison;
    for (int s = static_cast<int>(bad) + 1; s <= static_cast<int>(last_stage(x_run.gate)); ++s)
      x_result.second_fault |=
          stage_diverges(static_cast<Stage>(s), closed.capture, closed.comparison);
  }

  const Experiment& x_given;
  const TraceOptions& x_options;
  RunOptions x_run;
  Geometry x_geometry;
  std::shared_ptr<Replacements> x_replacements;  // the inputs of every stage, once they are known
  int x_step = 0, x_steps = 0;
  TraceResult x_result;
  Located x_in_production, x_in_isolation;
  std::optional<CheckResult> x_checked;
  std::vector<InputWrite> x_input_writes;  // of the production kernel
  std::string x_wrong_under;  // a schedule under which only the production kernel was found wrong
  std::string x_moved;        // a sentence for each look whose two runs differ
  bool x_moves_within_bounds = true;  // in all of these
};

}  // namespace

Answer TraceResult::answer() const {
  const bool by_order = schedules == ScheduleFinding::kOrderDependent ||
                        schedules == ScheduleFinding::kRightIfConverged;
  if (first || sanity.unsound() || (by_order && !sanity.within_bounds) ||
      !capture.input_writes.empty() || production.answer() == Answer::kDiverges)
    return Answer::kDiverges;
  const auto any = [&](Verdict v) {
    return std::any_of(stages.begin(), stages.end(),
                       [v](const StageReport& report) { return report.verdict == v; });
  };
  if (any(Verdict::kDiverges)) return Answer::kDiverges;
  // A stage that should have been compared and was not is no agreement; nor is one without o.
  const bool production_unjudged = !production.tensors.empty() && !production.agrees();
  const bool no_output = !stages.empty() && stages.back().verdict == Verdict::kNotJudged;
  const bool shows_nothing =
      !stages.empty() &&
      std::any_of(
          stages.back().prefix.tensors.begin(), stages.back().prefix.tensors.end(),
          [](const TensorComparison& t) { return t.tensor == Tensor::kO && lets_zeros_pass(t); });
  return any(Verdict::kAgrees) && !any(Verdict::kNotRun) && !production_unjudged && !no_output &&
                 !shows_nothing
             ? Answer::kAgrees
             : Answer::kNotJudged;
}

std::int64_t TraceResult::judged() const {
  std::int64_t sum = 0;
  for (const StageReport& stage : stages) sum += stage.prefix.judged();
  return sum;
}

std::int64_t TraceResult::cells() const {
  std::int64_t sum = judged();
  for (const StageReport& stage : stages) sum += stage.prefix.unjudged();
  return sum;
}

TraceResult trace(const Experiment& experiment, const TraceOptions& options) {
  Tracer tracer(experiment, options);
  try {
    return tracer.trace();
  } catch (const KernelFault& fault) {
    if (!tracer.may_trace_lines()) throw;
    throw RefusedTrace(fault, tracer.lines_of_fault());
  }
}

}  // namespace attn_diag

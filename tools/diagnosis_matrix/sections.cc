#include "tools/diagnosis_matrix/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "harness/base/parallel_for.h"
#include "harness/trace/check_sanity.h"

namespace attn_diag::diagnosis_matrix {
namespace {

constexpr std::size_t kBatch = 128;  // captures kept at a time

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// All settings that the targets are about; for the others, with outputs alone, only some bugs.
std::vector<Setting> settings(std::size_t bug_number) {
  std::vector<Setting> all;
  for (const InputSet& inputs : input_sets()) {
    const bool is_target = inputs.name == "randn" || inputs.name == "probe";
    if (is_target) all.push_back({inputs, DType::kFp16, true});
    if (is_target || bug_number % 3 == 0) all.push_back({inputs, DType::kFp16, false});
    if (inputs.name != "probe" || bug_number % 2 != 0) continue;
    all.push_back({inputs, bug_number % 4 == 0 ? DType::kBf16 : DType::kFp32, false});
  }
  return all;
}

// Whether two runs tell the kernels apart, beyond what rounding can do.
bool differ(const Capture& a, const Capture& b) {
  return !compare_captures(a, b, Tolerance{}).agrees();
}

std::optional<Stage> first_wrong_stage(const Comparison& comparison) {
  for (const TensorComparison& tensor : comparison.tensors)
    if (!tensor.agrees()) return stage_of(tensor.tensor);
  return std::nullopt;
}

}  // namespace

std::vector<VisibleResult> Runner::visible() const {
  const Setting setting = {input_sets().back(), DType::kFp16, true};  // probe
  std::vector<VisibleResult> results;
  for (const Bug& bug : x_records.bugs) {
    // With extras there is no reference for stages.
    if (!bug.is_formula() || x_records.problems.at(bug.problem).has_extras()) continue;
    for (const std::string& base : bug.kernels) {
      x_on_step(base + "." + bug.name);
      const Capture capture = run_case(x_kernels.load(base + "." + bug.name),
                                       x_records.problems.at(bug.problem), setting);
      const Comparison comparison = compare_with_reference(capture, Tolerance{});
      VisibleResult result{&bug, base, first_wrong_stage(comparison), false};
      for (const TensorComparison& tensor : comparison.tensors)
        if (tensor.tensor == Tensor::kO || tensor.tensor == Tensor::kLse)
          result.in_outputs |= !tensor.agrees();
      results.push_back(result);
    }
  }
  return results;
}

std::vector<std::string> Runner::without_record() const {
  std::vector<std::string> names;
  for (const std::string& base : x_kernels.bases())
    for (const std::string& name : x_kernels.singles(base))
      if (x_records.find(name.substr(name.find('.') + 1)) == nullptr) names.push_back(name);
  return names;
}

std::vector<SingleResult> Runner::singles(const std::function<bool(const Setting&)>& takes) const {
  std::vector<SingleResult> results;
  std::size_t number = 0, bug_number = 0;
  for (const Bug& bug : x_records.bugs) {
    if (!bug.is_formula()) continue;
    ++bug_number;
    const bool has_extras = x_records.problems.at(bug.problem).has_extras();
    for (const std::string& base : bug.kernels) {
      for (const Setting& setting : settings(bug_number)) {
        if (!x_kernels.takes(base, setting.dtype) || !takes(setting)) continue;
        if (!setting.with_stages && !bug.shows_in_outputs) continue;
        if (setting.with_stages && has_extras) continue;
        if (number++ % x_every == 0)
          results.push_back({&bug, base, setting, Outcome::kUnknown, {}, "", 0});
      }
    }
  }
  // Kernels run one after another; many answers are looked for at a time.
  for (std::size_t begin = 0; begin < results.size(); begin += kBatch) {
    const std::size_t n = std::min(kBatch, results.size() - begin);
    std::vector<Capture> captures;
    for (std::size_t i = 0; i < n; ++i) captures.push_back(run(results[begin + i]));
    parallel_for(static_cast<std::int64_t>(n), resolve_threads(0), [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      answer(captures[at], results[begin + at]);
    });
  }
  return results;
}

Capture Runner::run(const SingleResult& what) const {
  const std::string kernel = what.kernel + "." + what.bug->name;
  x_on_step(kernel + " " + text(what.setting));
  return run_case(x_kernels.load(kernel), x_records.problems.at(what.bug->problem), what.setting);
}

void Runner::answer(const Capture& capture, SingleResult& result) const {
  const auto begin = std::chrono::steady_clock::now();
  DiagnoseOptions options;
  options.threads = 1;
  const Bug& bug = *result.bug;
  options.extras = x_records.problems.at(bug.problem).extras();
  const Diagnosis diagnosis = diagnose(capture, options);
  result.outcome = judge(diagnosis, bug);
  result.words = words_of(diagnosis);
  result.seconds = seconds_since(begin);
  if (result.setting.with_stages && result.outcome != Outcome::kHidden)
    result.right_stage =
        std::find(bug.stages.begin(), bug.stages.end(), name(diagnosis.stage)) != bug.stages.end();
}

std::vector<UnsteadyResult> Runner::unsteady() const {
  std::vector<UnsteadyResult> results;
  for (const Bug& bug : x_records.bugs) {
    if (bug.is_formula()) continue;
    for (const std::string& base : bug.kernels) {
      x_on_step(base + "." + bug.name);
      const ProblemCase& c = x_records.problems.at(bug.problem);
      const Kernel& kernel = x_kernels.load(base + "." + bug.name);
      const InputData inputs = make_inputs(c.problem, "randn", 1, 1.0);
      RunOptions options;
      options.gate = Gate::kFull;
      options.taps = false;
      options.tile = c.tile;
      const Experiment experiment{kernel, c.problem, inputs, options};
      const Capture capture = run_kernel(experiment);
      const bool right = compare_with_reference(capture, Tolerance{}).agrees();
      const SanityCheck check = check_sanity(experiment, capture, right, 3);
      results.push_back({&bug, base, check.sanity.finding, check.sanity.detail});
    }
  }
  return results;
}

std::vector<PairResult> Runner::pairs(const Setting& setting) const {
  std::vector<PairResult> results;
  std::vector<Capture> captures;
  std::vector<std::pair<const Bug*, const Bug*>> bugs;
  const ProblemCase& c = x_records.problems.at("causal");
  for (const std::string& base : x_kernels.bases()) {
    if (!x_kernels.takes(base, setting.dtype)) continue;
    for (const std::string& pair : x_kernels.pairs(base)) {
      x_on_step(pair);
      const std::size_t dot = pair.find('.'), plus = pair.find('+');
      const Bug* const first = x_records.find(pair.substr(dot + 1, plus - dot - 1));
      const Bug* const second = x_records.find(pair.substr(plus + 1));
      const Capture both = run_case(x_kernels.load(pair), c, setting);
      PairResult result{pair, setting, false, PairOutcome::kUnknown, ""};
      for (const Bug* const alone : {first, second})
        result.is_masked |=
            !differ(both, run_case(x_kernels.load(base + "." + alone->name), c, setting));
      results.push_back(std::move(result));
      captures.push_back(both);
      bugs.emplace_back(first, second);
    }
  }
  parallel_for(static_cast<std::int64_t>(results.size()), resolve_threads(0), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    if (results[at].is_masked) return;
    DiagnoseOptions options;
    options.threads = 1;
    const Diagnosis diagnosis = diagnose(captures[at], options);
    results[at].outcome = judge_pair(diagnosis, *bugs[at].first, *bugs[at].second);
    results[at].words = words_of(diagnosis);
  });
  return results;
}

}  // namespace attn_diag::diagnosis_matrix

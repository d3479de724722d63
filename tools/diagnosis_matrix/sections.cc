#include "tools/diagnosis_matrix/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "harness/sanity.h"

namespace attn_diag::diagnosis_matrix {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// What the targets are about in whole; of the rest, with outputs alone, some bugs.
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
    if (!bug.is_formula()) continue;
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
    for (const std::string& base : bug.kernels) {
      for (const Setting& setting : settings(bug_number)) {
        if (!x_kernels.takes(base, setting.dtype) || !takes(setting)) continue;
        if (!setting.with_stages && !bug.shows_in_outputs) continue;
        if (number++ % x_every == 0) results.push_back(single(bug, base, setting));
      }
    }
  }
  return results;
}

SingleResult Runner::single(const Bug& bug, const std::string& base, const Setting& setting) const {
  const std::string kernel = base + "." + bug.name;
  x_on_step(kernel + " " + text(setting));
  const Capture capture =
      run_case(x_kernels.load(kernel), x_records.problems.at(bug.problem), setting);
  const auto begin = std::chrono::steady_clock::now();
  const Diagnosis diagnosis = diagnose(capture, {});
  SingleResult result{&bug, base, setting, judge(diagnosis, bug), {}, words_of(diagnosis), 0};
  result.seconds = seconds_since(begin);
  if (setting.with_stages && result.outcome != Outcome::kHidden)
    result.right_stage =
        std::find(bug.stages.begin(), bug.stages.end(), name(diagnosis.stage)) != bug.stages.end();
  return result;
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
      const Capture capture = run_kernel(kernel, c.problem, inputs, options);
      const bool right = compare_with_reference(capture, Tolerance{}).agrees();
      const SanityCheck check =
          check_sanity(kernel, c.problem, inputs, options, Tolerance{}, capture, right, 3);
      results.push_back({&bug, base, check.sanity.finding, check.sanity.detail});
    }
  }
  return results;
}

std::vector<PairResult> Runner::pairs(const Setting& setting) const {
  std::vector<PairResult> results;
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
      if (!result.is_masked) {
        const Diagnosis diagnosis = diagnose(both, {});
        result.outcome = judge_pair(diagnosis, *first, *second);
        result.words = words_of(diagnosis);
      }
      results.push_back(std::move(result));
    }
  }
  return results;
}

}  // namespace attn_diag::diagnosis_matrix

#include "tools/diagnosis_matrix/planted_kernels.h"

#include <fmt/format.h>

#include "attn_diag/harness/error.h"

namespace attn_diag::diagnosis_matrix {

const std::vector<InputSet>& input_sets() {
  static const std::vector<InputSet> sets = {{"randn", "randn", 1.0},
                                             {"small", "small", 1.0},
                                             {"heavy", "heavy", 1.0},
                                             {"probe", "probe", 1.0}};
  return sets;
}

std::string text(const Setting& setting) {
  constexpr const char* types[] = {"fp16", "bf16", "fp32", "fp64"};
  return setting.inputs.name + " " + types[static_cast<std::size_t>(setting.dtype)] + " " +
         (setting.with_stages ? "stages" : "outputs");
}

PlantedKernels::PlantedKernels(std::string folder) : x_folder(std::move(folder)) {}

std::string PlantedKernels::path(const std::string& base) const {
  return x_folder + "/planted_" + base + ".host.so";
}

const Kernel& PlantedKernels::load(const std::string& name) {
  const auto at = x_loaded.find(name);
  if (at != x_loaded.end()) return at->second;
  const std::string base = name.substr(0, name.find('.'));
  return x_loaded.emplace(name, Kernel::load(path(base) + ":" + name, "host")).first->second;
}

bool PlantedKernels::takes(const std::string& base, DType dtype) {
  return (load(base).info().support->dtypes >> static_cast<int>(dtype) & 1u) != 0;
}

std::vector<std::string> PlantedKernels::singles(const std::string& base) const {
  std::vector<std::string> names;
  for (const std::string& name : describe_library(path(base)).kernels)
    if (name.find('.') != std::string::npos && name.find('+') == std::string::npos)
      names.push_back(name);
  return names;
}

std::vector<std::string> PlantedKernels::pairs(const std::string& base) const {
  std::vector<std::string> names;
  for (const std::string& name : describe_library(path(base)).kernels)
    if (name.find('+') != std::string::npos) names.push_back(name);
  return names;
}

Capture run_case(const Kernel& kernel, const ProblemCase& c, const Setting& setting) {
  Problem problem = c.problem;
  problem.dtype = setting.dtype;
  const InputData inputs = make_inputs(problem, setting.inputs.kind, 1, setting.inputs.scale);
  RunOptions options;
  options.gate = setting.with_stages ? Gate::kReduce : Gate::kFull;
  options.taps = setting.with_stages;
  options.tile = c.tile;
  return run_kernel({kernel, problem, inputs, options});
}

}  // namespace attn_diag::diagnosis_matrix

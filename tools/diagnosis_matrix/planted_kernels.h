// The libraries of fixtures/diagnosis/kernels, and one run of one of their kernels.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/harness/run.h"
#include "tools/diagnosis_matrix/records.h"

namespace attn_diag::diagnosis_matrix {

struct InputSet {
  std::string name, kind;
  double scale = 1;
};
// The four that the evidence is about: randn, small, heavy, probe.
const std::vector<InputSet>& input_sets();

struct Setting {
  InputSet inputs;
  DType dtype = DType::kFp16;
  bool with_stages = true;
};
std::string text(const Setting& setting);  // "probe fp16 stages"

class PlantedKernels {
 public:
  // `folder` holds planted_sequential.host.so and its like.
  explicit PlantedKernels(std::string folder);

  const std::vector<std::string>& bases() const { return x_bases; }  // "sequential", ...
  // "sequential", "sequential.alpha-missing-o", "split.a+b".
  const Kernel& load(const std::string& name);
  bool takes(const std::string& base, DType dtype);
  // Those of one bug: {"sequential.a", ...}, and of two: {"sequential.a+b", ...}.
  std::vector<std::string> singles(const std::string& base) const;
  std::vector<std::string> pairs(const std::string& base) const;

 private:
  std::string path(const std::string& base) const;

  std::string x_folder;
  std::vector<std::string> x_bases{"sequential", "split", "wmma"};
  std::map<std::string, Kernel> x_loaded;
};

// One run of `kernel` on a problem of the records.
Capture run_case(const Kernel& kernel, const ProblemCase& c, const Setting& setting);

}  // namespace attn_diag::diagnosis_matrix

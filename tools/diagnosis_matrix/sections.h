// The runs of the evidence, each a list of records. The order of everything is fixed; so are all seeds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/sanity.h"
#include "tools/diagnosis_matrix/outcome.h"
#include "tools/diagnosis_matrix/planted_kernels.h"

namespace attn_diag::diagnosis_matrix {

// Whether a planted bug shows at all: against the reference, without diagnosis.
struct VisibleResult {
  const Bug* bug = nullptr;
  std::string kernel;
  std::optional<Stage> first_stage;  // that diverges; none where all tensors agree
  bool in_outputs = false;           // o or lse diverge
};

struct SingleResult {
  const Bug* bug = nullptr;
  std::string kernel;  // "sequential"
  Setting setting;
  Outcome outcome = Outcome::kUnknown;
  std::optional<bool> right_stage;  // with stages, where something is wrong
  std::string words;                // of the diagnosis
  double seconds = 0;               // of diagnose()
};

struct PairResult {
  std::string kernel;  // "split.a+b"
  Setting setting;
  // One bug hides the other: the output is that of one of them alone.
  bool is_masked = false;
  PairOutcome outcome = PairOutcome::kUnknown;
  std::string words;
};

// Gate 0 of a kernel whose result moves.
struct UnsteadyResult {
  const Bug* bug = nullptr;
  std::string kernel;
  SanityFinding finding = SanityFinding::kNotChecked;
  std::string detail;
};

// Whether the line lets a right name stand.
struct LineResult {
  const Bug* bug = nullptr;
  std::string kernel;
  bool is_named = false;  // rightly, by the numbers alone
  LineSays says = LineSays::kNothing;
  std::string words;
};

struct RightResult {
  std::int64_t cases = 0;
  std::vector<std::string> detections;  // of which there should be none
};

// Runs the sections. Of singles() every `every_nth` case is run, from the first on.
class Runner {
 public:
  Runner(PlantedKernels& planted, const Records& recorded, std::size_t every_nth,
         std::function<void(const std::string&)> step)
      : x_kernels(planted), x_records(recorded), x_every(every_nth), x_on_step(std::move(step)) {}

  // Every formula bug, with stages, on probe inputs.
  std::vector<VisibleResult> visible() const;
  // Kernels with a bug that has no record.
  std::vector<std::string> without_record() const;
  // Every formula bug of every kernel that can have it, under each setting that `takes` lets through.
  std::vector<SingleResult> singles(const std::function<bool(const Setting&)>& takes) const;
  std::vector<UnsteadyResult> unsteady() const;
  std::vector<PairResult> pairs(const Setting& setting) const;
  // Every formula bug of `sequential`; one watch build, from `source`, has them all.
  std::vector<LineResult> lines(const std::filesystem::path& source) const;

 private:
  Capture run(const SingleResult& what) const;
  void answer(const Capture& capture, SingleResult& result) const;

  PlantedKernels& x_kernels;
  const Records& x_records;
  std::size_t x_every;
  std::function<void(const std::string&)> x_on_step;
};

// Random problems on kernels without a bug: ours, and those of PlantedKernels.
RightResult right_kernels(PlantedKernels& kernels, std::int64_t cases,
                          const std::function<void(const std::string&)>& on_step);

}  // namespace attn_diag::diagnosis_matrix

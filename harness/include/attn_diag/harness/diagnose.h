// Which known bug reproduces the wrong numbers of a run, with the evidence, and which do not.
//
// Every hypothesis of the catalogue (attn_diag/reference/counterfactual.h) predicts the numbers of the
// first stage that is wrong, or of o and lse if no stage tensor is there. A row is explained by a
// hypothesis if every known cell of it is within the prediction's rounding bound. A bug is named only if
// it explains the rows and nothing else does; what the inputs cannot tell apart is reported as a class,
// with the experiment that would.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/files.h"
#include "attn_diag/reference/counterfactual.h"

namespace attn_diag {

// Whether numbers first go wrong where a bug would make them so (lines.h: LineFault).
enum class LineSays : std::uint8_t {
  kNothing,    // it was not looked for, or cannot be told
  kAgrees,     // in that part of attention
  kOtherwise,  // in a part that the bug leaves right
};

// How well one hypothesis, or pair, accounts for what was recorded.
struct Match {
  struct Part {
    std::string id, statement, formula, citation, remedy;
    Stage stage = Stage::kQk;
    std::vector<reference::ParameterValue> parameters;
  };
  std::vector<Part> parts;  // one; two for a pair of bugs
  std::string label;        // "temperature(kappa = softmax_scale)"
  // Rows whose every known cell is within the bound, of all rows compared and of those that are wrong.
  std::int64_t rows = 0, rows_explained = 0, wrong_rows = 0, wrong_rows_explained = 0;
  // Explained wrong rows for which the right value is not within the same bound: the evidence.
  std::int64_t telling_rows = 0;
  // Labels of variants that are the same function on all inputs tried, including a general form of it.
  std::vector<std::string> equivalent;
  // Labels of this bug with other parameters that explain as much: which of them it is remains open.
  std::vector<std::string> other_parameters;
  double residual_over_bound = 0;  // worst cell of all rows; +inf where NaN or an infinity differs
  double median_residual_over_bound = 0;  // over the wrong rows, of each row's worst cell
  bool confirmed = false;                 // on every row, not on a sample
  LineSays line = LineSays::kNothing;     // of a kernel whose line was looked for
};

enum class DiagnosisVerdict : std::uint8_t {
  kNothingWrong,  // the comparison agrees: there is nothing to diagnose
  kNamed,         // one bug, or one pair, explains every row, and no other
  kClass,         // several do: these inputs cannot tell them apart
  kPartial,       // the best explains most wrong rows, not all
  kUnknown,       // none of the known bugs
  kNotAFormula,   // the result moves between runs, or memory was read before it was written
  kNotJudged,     // no cell of o has a bound, or none of anything: right or wrong cannot be told
  kDisputed,      // kNamed or kClass by the numbers, and the line says otherwise
};

// A run that would tell apart what these inputs cannot.
struct TellingRun {
  std::string what;  // "run with --inputs probe"
  std::string why;   // "lse differs by ln 2 between them"
  // What to change: the inputs, as make_inputs names them (empty: as they are), the cut, or neither.
  std::string inputs;
  std::optional<Geometry> cut;
};

struct Diagnosis {
  DiagnosisVerdict verdict = DiagnosisVerdict::kUnknown;
  Stage stage = Stage::kReduce;  // whose tensors were matched
  std::vector<Tensor> tensors;   // its tensors that were matched
  std::vector<Match> best;  // kNamed: one; kClass, kDisputed: all candidates, the simplest first;
                            // kPartial, kUnknown: the best few
  std::optional<Match> runner_up;       // the best that is not in `best`
  std::vector<Match> ruled_out;         // every other hypothesis, each at its best parameters
  std::vector<std::string> residual;    // kUnknown, kPartial: the structure of what is left
  std::vector<TellingRun> experiments;  // kClass: what would tell them apart
  std::int64_t rows = 0, wrong_rows = 0;
  std::int64_t judged = 0, unjudged = 0;  // cells of what was compared
  std::string not_judged;                 // kNotJudged: why
  std::vector<std::string> notes;         // "tile sizes are not known: 16 to 256 were tried"
  double confidence = 0;  // 0..1: share of wrong rows explained times how far off the runner-up is
};

constexpr Answer answer_of(DiagnosisVerdict verdict) {
  return verdict == DiagnosisVerdict::kNothingWrong ? Answer::kAgrees
         : verdict == DiagnosisVerdict::kNotJudged  ? Answer::kNotJudged
                                                    : Answer::kDiverges;
}
inline Answer answer_of(const Diagnosis& diagnosis) { return answer_of(diagnosis.verdict); }

// Cuts of a problem into tiles and splits as kernels usually have them, to try where a file does not say.
// `num_splits`: 1 where that is not known either.
std::vector<Geometry> usual_cuts(const Problem& problem, std::int32_t num_splits);
// The cuts to try, beside the capture's own, for a case known by its arrays only: none if `tile` is given, which then
// is the capture's, else the usual ones. Notes in `assumed` what is taken. num_splits 0: not known.
std::vector<Geometry> cuts_to_try(ForeignCase& foreign, std::optional<TileShape> tile,
                                  std::int32_t num_splits);

// Multiplications that are spent on pairs of bugs unless said otherwise: some seconds of one core.
inline constexpr double kPairWork = 1e10;

struct DiagnoseOptions {
  Tolerance tolerance;  // which rows are wrong
  int threads = 0;      // 0: all cores
  bool pairs = true;    // search pairs where no single bug explains every row
  // The most that is spent on pairs: a count, so that the result does not depend on the machine. A note says how
  // much was not tried.
  double pair_work = kPairWork;
  // Cuts to try where the file does not say how the kernel tiles; empty: the capture's alone.
  std::vector<Geometry> geometries;
  // Cuts in which the kernel can be run again: what an experiment may propose.
  std::vector<Geometry> other_cuts;
  reference::Extras extras;  // bias, softcap
  std::function<void(int step, int steps, const std::string& what)> on_step;
};

// `capture` holds q, k, v and at least o, or a stage tensor. Starts at the first stage that is wrong, from
// that stage's recorded inputs. Throws Error where there is nothing to compare.
Diagnosis diagnose(const Capture& capture, const DiagnoseOptions& options);

// How one hypothesis fails, or does not: its best variant on every row.
struct WhyNot {
  Match match;
  bool possible = true;  // false: the bug cannot be there in this case (one split, no mask ...)
  bool exonerated =
      false;  // every tensor of its stage was compared and agrees: not tried by diagnose()
  struct Cell {
    Tensor tensor = Tensor::kO;
    std::array<std::int64_t, 5> index{};  // absolute; the first info(tensor).rank are valid
    double actual = 0, predicted = 0, bound = 0;
  };
  std::optional<Cell> worst;  // the worst cell outside the bound; none: it accounts for everything
};

// Why a hypothesis of the catalogue was not named, for the first stage that is wrong. Throws Error for an
// unknown id, with the nearest ones.
WhyNot why_not(const Capture& capture, const DiagnoseOptions& options, const std::string& id);

}  // namespace attn_diag

// Runs over several cases: one line and one verdict a case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/sanity.h"
#include "harness/report/json.h"
#include "harness/report/junit.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// kLatent: right as a GPU most likely has it, wrong in other orders or on other bytes that nobody wrote. kNotJudged: it
// ran, and nothing, or nothing of o, has a bound.
enum class RowVerdict : std::uint8_t {
  kAgrees,
  kDiverges,
  kUnsupported,
  kFailed,
  kLatent,
  kNotJudged
};
RowVerdict row_verdict(Answer answer);

struct MatrixRow {
  std::string kernel, backend;
  Problem problem;
  Geometry geometry;     // unless unsupported
  TileShape tile{0, 0};  // 0: the kernel's choice, unknown where it is unsupported
  int num_splits = 0;
  std::string inputs;
  std::uint64_t seed = 0;
  double input_scale = 1;
  bool nonfinite_inputs = false, stale = false;
  RowVerdict verdict = RowVerdict::kUnsupported;
  std::string why;        // of kUnsupported, kFailed
  Comparison comparison;  // of kAgrees, kDiverges, kNotJudged
  std::vector<InputWrite> input_writes;
  std::int64_t coverage_faults = 0;
  int runs = 1;                              // of this case
  std::optional<SameOutput> same_output;     // as Capture has it
  std::int64_t moved_cells = 0;              // whose bits differ between the runs
  bool moved_within_bounds = false;          // in every run
  Sanity sanity;                             // of the production kernel
  std::string not_checked;                   // why that was not asked, where it could have been
  std::string reproduce, hunt, look_closer;  // shell lines: this run, its trace, its check
  double seconds = 0;
};

// "agrees", "diverges", "unsupported", "failed", "latent", "not judged"
std::string_view name(RowVerdict v);

// One line: where it diverges first, or why it could not be compared, and what else there is to say.
std::string remark(const MatrixRow& row);

// "AGREES: ...", "LATENT: ...", "DIVERGES: reduce diverges first, ..." or "COULD NOT COMPARE: ..." of one
// compared row.
std::string comparison_headline(const MatrixRow& row, const Style& style);

// The count of each verdict, the table, and how to hunt what diverges. Columns in which all rows
// are alike are said once, above.
std::string matrix_text(const std::vector<MatrixRow>& rows, const Style& style, bool verdict_only);

Json matrix_json(const std::vector<MatrixRow>& rows, int exit_code, const CommandContext& context);
// One row alone, with its provenance.
Json run_json(const Capture& capture, const MatrixRow& row, const CommandContext& context);

std::vector<JunitCase> junit_of_rows(const std::vector<MatrixRow>& rows);

}  // namespace attn_diag::report

// Small edits of a kernel's source, tried on the case that the flags name: for `repair`, and `trace --try-edits`.
#pragma once

#include "attn_diag/harness/lines.h"
#include "harness/repair/repair.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/flags.h"
#include "tools/attn_diag/progress.h"

namespace attn_diag::cli {

struct RepairedCase {
  RequestedCase requested;  // of the production kernel, on the host
  repair::RepairResult result;
};
// `options`: all but the processes.
RepairedCase repair_case(Flags flags, repair::RepairOptions options);

// What --try-edits asks for; 0: nothing. Throws Error for what is no time.
double edit_seconds(const Flags& flags);

// Tries edits at the suspects, and near them, for as many seconds; lines of what is found come first, but behind one
// that is claimed. Errors become the reason why nothing was found.
void try_edits(const Flags& flags, double seconds, Progress& progress, LineDivergence& lines);

}  // namespace attn_diag::cli

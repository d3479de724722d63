// What to run: the flags of the problem and of the kernel, multiplied out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/files.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/run.h"
#include "harness/compare/some_rows.h"
#include "harness/library/support.h"
#include "tools/attn_diag/flags.h"

namespace attn_diag::cli {

struct RequestedCase {
  std::string kernel;   // as typed
  std::string backend;  // resolved: "host" or "cuda"
  std::vector<std::string>
      notes;  // why the backend, where the choice was left open; what plan() chose
  Problem problem;
  LeftOpen open;  // of the problem: plan() lets the kernel choose
  RunOptions run;
  SomeRows rows;  // of which o and lse alone are judged; no queries: all that is recorded
  bool scale_given = false;  // --softmax-scale
  std::string inputs = "randn";
  bool inputs_from_file = false;
  std::uint64_t seed = 0;
  double input_scale = 1;
};

// Every combination of the lists in the flags, kernels outermost. Throws Error for values that make
// no sense, whatever the kernel, and where there is more than one case but `many` is false.
std::vector<RequestedCase> expand_cases(const Flags& flags, bool many);

Tolerance parse_tolerance(const Flags& flags);

// For a command that was given a file: throws Error for flags that are about running a kernel.
void refuse_case_flags(const Flags& flags);
// The cuts in which diagnose looks at a file, as --tile and --num-splits say or else by trying.
std::vector<Geometry> cuts_of(const Flags& flags, ForeignCase& file);

// The rows that --batch-index, --head and --query sample:N name.
SomeRows parse_some_rows(const Flags& flags, const Problem& problem, std::uint64_t seed);

// The words of a command line that runs this very case again: no default is left out.
std::vector<std::string> reproduce(const std::string& command, const RequestedCase& one,
                                   const Flags& flags);

Kernel load_kernel(const RequestedCase& one);
// The build for check, by name or by the path of either build.
Kernel load_instrumented(const std::string& spec);

// "./mine.so B=1 H=2 S=100 ...": with what the kernel takes where the problem was left open.
std::string case_text(const Kernel& kernel, const RequestedCase& one);

// What the kernel makes of the case: its tile and splits, written into the case's options; and what of the problem
// was left open and the kernel does not take, which is then what it takes.
Geometry plan(const Kernel& kernel, RequestedCase& one);

// The inputs, made or read. Throws Error before that if the run would not fit into memory.
InputData inputs_of(const RequestedCase& one, const Kernel& kernel, const Geometry& geometry);

}  // namespace attn_diag::cli

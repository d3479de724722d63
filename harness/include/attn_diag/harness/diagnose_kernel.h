// A diagnosis of a kernel that can be run: gate 0 first, then a run with every stage, then what is wrong.
#pragma once

#include "attn_diag/harness/diagnose.h"
#include "attn_diag/harness/trace.h"

namespace attn_diag {

struct KernelDiagnosis {
  TraceResult trace;  // without isolation and closure: the matching has each stage's own inputs
  // What was diagnosed: the trace's capture, or, where only the production kernel is wrong, that one's.
  Capture capture;
  Diagnosis diagnosis;

  // What was run to tell a class apart, a sentence each.
  std::vector<std::string> experiments;

  Answer answer() const {
    const Answer traced = trace.answer(), diagnosed = answer_of(diagnosis);
    return traced == Answer::kDiverges ? traced : diagnosed == Answer::kAgrees ? traced : diagnosed;
  }
  bool agrees() const { return answer() == Answer::kAgrees; }
};

// Throws what trace() and diagnose() throw.
KernelDiagnosis diagnose_kernel(const Experiment& experiment, const TraceOptions& tracing,
                                const DiagnoseOptions& options);

// As diagnose_kernel(), from a trace already made.
KernelDiagnosis diagnose_traced(const Experiment& experiment, TraceResult traced,
                                const DiagnoseOptions& options);

// Where the diagnosis is a class: runs the kernel on other inputs and in other cuts that tell its members apart,
// as the experiments say, and keeps those that account for these results too. If one is left, it is named.
void run_experiments(const Experiment& experiment, KernelDiagnosis& found,
                     const DiagnoseOptions& options);

}  // namespace attn_diag

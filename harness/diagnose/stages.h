// Where a diagnosis starts: which stages are at fault by themselves, what is matched for each, and which of
// its inputs are taken as recorded.
#pragma once

#include <vector>

#include "attn_diag/harness/diagnose.h"
#include "harness/diagnose/search.h"

namespace attn_diag::matching {

struct Subject {
  Stage stage = Stage::kReduce;
  std::vector<Tensor> tensors;    // matched
  std::vector<Tensor> given;      // inputs of the stage as the kernel had them
  std::vector<Stage> exonerated;  // stages of which every tensor was compared and agrees
};

// Compares with the reference. Empty with a bias or a softcap, which the reference does not have: then only
// predictions are compared. Throws Error where there is nothing to compare.
Comparison compare(const Capture& capture, const DiagnoseOptions& options);

// A bias or a softcap.
bool has_extras(const DiagnoseOptions& options);

// In pipeline order; at least one if the comparison has a mismatch. The first is the first stage with a wrong
// tensor. A later one is there if its inputs were recorded and what it made of them is wrong by itself.
// o and lse are matched with the last. With a bias or a softcap: o and lse alone, wrong or not.
std::vector<Subject> subjects(const Capture& capture, const Comparison& comparison,
                              const DiagnoseOptions& options);

// The capture's data for predictions, under its own cut and, where only outputs are matched, under the
// others of the options.
Cuts make_cuts(const Capture& capture, const std::vector<Tensor>& given,
               const DiagnoseOptions& options);

}  // namespace attn_diag::matching

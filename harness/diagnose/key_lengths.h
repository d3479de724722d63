// Cases from files or memory whose batch entries may differ in their number of keys (ForeignCase::kv_lens).
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/files.h"

namespace attn_diag {

// Compares with the reference, each batch entry with its own keys.
Comparison compare_case(const ForeignCase& one, const Tolerance& tolerance, int threads = 0);

// A case that diagnose() takes: the case itself or, if it has lengths, the batch entry that is wrong first in
// `comparison` (compare_case's), by itself, which `note` says. Throws Error where that entry has no keys.
struct CaseToDiagnose {
  ForeignCase one;
  std::string note;
};
CaseToDiagnose case_to_diagnose(const ForeignCase& one, const Comparison& comparison);
// Compares itself, where there are lengths.
CaseToDiagnose case_to_diagnose(const ForeignCase& one, const Tolerance& tolerance, int threads);

// For a wrong case with lengths: other lengths with which all of it is right, in words.
std::vector<std::string> lengths_that_fit(const ForeignCase& one, const Tolerance& tolerance,
                                          int threads = 0);

}  // namespace attn_diag

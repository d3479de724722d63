// What was found for one subject, and how several are joined.
#pragma once

#include <vector>

#include "attn_diag/harness/diagnose.h"
#include "harness/diagnose/stages.h"

namespace attn_diag::matching {

// The recorded numbers of a subject, with its wrong rows marked: those of the comparison for the first
// subject, else those that are not what the right formula makes of the recorded inputs.
Evidence evidence_of(const Capture& capture, const Comparison& comparison, const Subject& subject,
                     bool first, const Cuts& cuts, const DiagnoseOptions& options);

// Diagnoses one subject. `comparison` is the capture's with the reference; `first` if it is of the first
// stage that is wrong, whose wrong rows the comparison has.
Diagnosis diagnose_subject(const Capture& capture, const Comparison& comparison,
                           const Subject& subject, bool first, const DiagnoseOptions& options);

// Where o of one run is wrong, as residual_structure says it, for a result that is no formula since other runs
// differ; the sentences say that this is about one run. Empty where this run is right.
std::vector<std::string> where_it_is_wrong(const Capture& capture, const DiagnoseOptions& options);

// The diagnosis of a kernel with faults in several stages. Where each is named, or a class, the answer has
// them together; else it is partial.
Diagnosis join(std::vector<Diagnosis> parts);

}  // namespace attn_diag::matching

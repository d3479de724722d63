#include "attn_diag/harness/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "attn_diag/harness/error.h"
#include "harness/diagnose/outcome.h"
#include "harness/diagnose/stages.h"
#include "harness/repetition.h"

namespace attn_diag {
namespace {

using matching::Subject;

const TensorComparison* comparison_of(const Comparison& comparison, Tensor tensor) {
  for (const TensorComparison& t : comparison.tensors)
    if (t.tensor == tensor) return &t;
  return nullptr;
}

// What o and lse say together.
std::optional<std::string> two_outputs(const Comparison& comparison) {
  const TensorComparison* o = comparison_of(comparison, Tensor::kO);
  const TensorComparison* lse = comparison_of(comparison, Tensor::kLse);
  if (o == nullptr || lse == nullptr) return std::nullopt;
  if (o->mismatched > 0 && lse->agrees())
    return "lse is right and o is wrong: scores, row max and row sum are right, the fault is in P "
           "V, in how "
           "it is accumulated, or in o's last steps.";
  if (o->agrees() && lse->mismatched > 0)
    return "o is right and lse is wrong: what cancels in o does not in lse: its base, the row max "
           "or a factor "
           "that P and l share.";
  return std::nullopt;
}

}  // namespace

Diagnosis diagnose(const Capture& capture, const DiagnoseOptions& options) {
  if (capture.q.empty() || capture.k.empty() || capture.v.empty())
    throw Error("diagnose needs q, k and v beside the output: one of them is not there.");
  Diagnosis out;
  if (capture.repetition.moved()) {
    out.verdict = DiagnosisVerdict::kNotAFormula;
    out.notes.push_back(repetition_text(capture.repetition));
    return out;
  }
  if (options.on_step) options.on_step(1, 3, "comparing with the reference");
  const Comparison comparison = matching::compare(capture, options);
  std::vector<Subject> all = matching::subjects(capture, comparison, options);
  if (all.empty()) {
    out.verdict = DiagnosisVerdict::kNothingWrong;
    out.rows = capture.region.extent[0] * capture.region.extent[1] * capture.region.extent[2];
    return out;
  }
  std::vector<Diagnosis> parts;
  for (const Subject& subject : all)
    parts.push_back(
        matching::diagnose_subject(capture, comparison, subject, parts.empty(), options));
  out = matching::join(std::move(parts));
  if (const std::optional<std::string> sentence = two_outputs(comparison))
    out.notes.insert(out.notes.begin(), *sentence);
  return out;
}

}  // namespace attn_diag

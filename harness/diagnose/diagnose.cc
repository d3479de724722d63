#include "attn_diag/harness/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "attn_diag/harness/error.h"
#include "harness/compare/looser_declaration.h"
#include "harness/diagnose/outcome.h"
#include "harness/diagnose/stages.h"
#include "harness/run/repetition.h"

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

bool answered(const Diagnosis& d) {
  return d.verdict == DiagnosisVerdict::kNamed || d.verdict == DiagnosisVerdict::kClass ||
         d.verdict == DiagnosisVerdict::kNothingWrong;
}

Diagnosis diagnose_all(const Capture& capture, const Comparison& comparison,
                       const std::vector<Subject>& subjects, const DiagnoseOptions& options) {
  std::vector<Diagnosis> parts;
  for (const Subject& subject : subjects)
    parts.push_back(
        matching::diagnose_subject(capture, comparison, subject, parts.empty(), options));
  return matching::join(std::move(parts));
}

// The stages that are wrong; where nothing accounts for their tensors, o and lse alone, since kernels differ in what
// they record of a stage, and in which stage a mistake is first seen.
Diagnosis diagnose_stages(const Capture& capture, const Comparison& comparison,
                          const std::vector<Subject>& subjects, const DiagnoseOptions& options) {
  const auto is_output = [](Tensor t) { return t == Tensor::kO || t == Tensor::kLse; };
  const bool has_stages = std::any_of(subjects.begin(), subjects.end(), [&](const Subject& s) {
    return !std::all_of(s.tensors.begin(), s.tensors.end(), is_output);
  });
  if (!has_stages || !capture.has(Tensor::kO))
    return diagnose_all(capture, comparison, subjects, options);
  DiagnoseOptions singles = options;
  singles.pairs = false;
  Diagnosis by_stages = diagnose_all(capture, comparison, subjects, singles);
  if (answered(by_stages)) return by_stages;
  Subject outputs;
  for (const Tensor t : {Tensor::kLse, Tensor::kO})
    if (capture.has(t)) outputs.tensors.push_back(t);
  // Pairs are tried twice: for o and lse, then for each stage.
  DiagnoseOptions half = options;
  half.pair_work = options.pair_work / 2;
  Diagnosis by_outputs = matching::diagnose_subject(capture, comparison, outputs, true, half);
  if (answered(by_outputs) && by_outputs.verdict != DiagnosisVerdict::kNothingWrong) {
    by_outputs.notes.push_back(fmt::format(
        "It was found by o and lse: what the kernel recorded of stage {} is not what is predicted "
        "of it.",
        name(by_stages.stage)));
    by_outputs.stage = by_stages.stage;
    return by_outputs;
  }
  half.pair_work /= static_cast<double>(subjects.size());
  return options.pairs ? diagnose_all(capture, comparison, subjects, half) : by_stages;
}

}  // namespace

Diagnosis diagnose(const Capture& capture, const DiagnoseOptions& options) {
  if (capture.q.empty() || capture.k.empty() || capture.v.empty())
    throw Error("diagnose needs q, k and v beside the output: one of them is not there.");
  Diagnosis out;
  if (capture.repetition.unsound()) {
    out.verdict = DiagnosisVerdict::kNotAFormula;
    out.notes.push_back(repetition_text(capture.repetition));
    out.residual = matching::where_it_is_wrong(capture, options);
    return out;
  }
  if (options.on_step) options.on_step(1, 3, "comparing with the reference");
  const Comparison comparison = matching::compare(capture, options);
  std::vector<Subject> all = matching::subjects(capture, comparison, options);
  if (all.empty()) {
    const bool judged = comparison.answer() == Answer::kAgrees;
    out.verdict = judged ? DiagnosisVerdict::kNothingWrong : DiagnosisVerdict::kNotJudged;
    if (!judged) out.not_judged = why_not_judged(comparison);
    out.judged = comparison.judged();
    out.unjudged = comparison.unjudged();
    out.notes = comparison.notes;
    out.rows = capture.region.extent[0] * capture.region.extent[1] * capture.region.extent[2];
    return out;
  }
  out = diagnose_stages(capture, comparison, all, options);
  if (!comparison.tensors.empty()) {
    out.judged = comparison.judged();
    out.unjudged = comparison.unjudged();
  }
  // About what a library's kernel declares; foreign files declare nothing.
  if (!capture.provenance.library.empty())
    if (std::string note =
            looser_declaration(capture, comparison, options.tolerance, options.threads);
        !note.empty())
      out.notes.insert(out.notes.begin(), std::move(note));
  if (const std::optional<std::string> sentence = two_outputs(comparison))
    out.notes.insert(out.notes.begin(), *sentence);
  return out;
}

}  // namespace attn_diag

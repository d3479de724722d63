// A diagnosis for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/diagnose.h"
#include "attn_diag/harness/tile_trials.h"
#include "attn_diag/harness/trace.h"
#include "harness/diagnose/tap_lines.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// What is reported, and what stands around it. Pointers may be null; commands are shell lines, or empty.
struct DiagnosisView {
  const Diagnosis* diagnosis = nullptr;
  const Capture* capture = nullptr;
  const TraceResult* trace = nullptr;  // of the kernel, where it was run
  const TileFinding* tiles = nullptr;  // --active
  // --active: what was run to tell a class apart.
  const std::vector<std::string>* experiments = nullptr;
  const std::vector<WhyNot>* why_not = nullptr;
  std::vector<TapLine> taps;  // where the kernel records what is wrong
  std::string subject;        // kernel or file
  std::string reproduce, confirm, check;
  // For each experiment of the diagnosis its command, or ""; empty: there are none.
  std::vector<std::string> experiment_commands;
  std::optional<Answer> kernel_answer;  // of the kernel, where it was run

  Answer answer() const { return kernel_answer.value_or(answer_of(*diagnosis)); }
};

std::string_view name(DiagnosisVerdict verdict);  // "named", "class", ...

// One line without its newline: "NAMED: temperature(kappa = softmax_scale): ...".
std::string diagnosis_headline(const Diagnosis& diagnosis);

// For a kernel that was run, with how sure it is where the result moves.
std::string diagnosis_headline(const DiagnosisView& view);
// What to act on: which bug, how much it accounts for, where to look.
std::string diagnosis_paragraph(const DiagnosisView& view);

struct DiagnosisTextOptions {
  Style style;
  bool verdict_only = false;
};
std::string diagnosis_text(const DiagnosisView& view, const DiagnosisTextOptions& options);

Json diagnosis_json(const DiagnosisView& view, const CommandContext& context);

}  // namespace attn_diag::report

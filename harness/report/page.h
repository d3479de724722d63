// The page of attn-diag report: one HTML file with everything that is known of a case. It needs nothing beside it.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/numerics.h"
#include "attn_diag/harness/trace.h"
#include "harness/compare/error_maps.h"
#include "harness/report/check_report.h"
#include "harness/report/diagnosis.h"

namespace attn_diag::report {

// What is shown; all but the first four may be missing. A null pointer: not known, and the sentence beside it says why.
struct PageView {
  Answer answer = Answer::kNotJudged;
  bool latent = false;
  std::string headline;   // "DIVERGES: reduce diverges first, head 0, query 1, ..."
  std::string subject;    // kernel or file
  std::string version;    // of attn-diag
  std::string reproduce;  // a shell line
  std::string text;       // what the command for a terminal says of the same
  Tolerance tolerance;

  const Capture* capture = nullptr;        // null for a run without a usable result
  const Comparison* comparison = nullptr;  // of the capture, all stages
  const std::optional<FirstDivergence>* first = nullptr;
  const std::vector<PatternStatement>* pattern = nullptr;
  const TraceResult* trace = nullptr;  // of a kernel that was run
  const ErrorMaps* maps = nullptr;
  std::vector<InvariantResult> invariants;  // of the capture
  const LineDivergence* lines = nullptr;
  const DiagnosisView* diagnosis = nullptr;
  const CheckView* check = nullptr;
  std::string no_maps, no_lines, no_diagnosis, no_check;
  std::string show, repair;  // shell lines; empty: none
};

// D3, with which the page is drawn, as a script. Throws Error where it is not installed.
std::string plotting_library();

std::string page_html(const PageView& view, const std::string& library);

// The page in few words and pictures, for a terminal of at most 80 columns.
std::string page_text(const PageView& view, const Style& style);
// And for programs.
Json page_json(const PageView& view, const CommandContext& context);

// Text as HTML shows it.
std::string escape(std::string_view text);

// Its sections, in their order. Empty: the page has no such section.
std::string verdict_section(const PageView& view);
std::string diagnosis_section(const PageView& view);
std::string line_section(const PageView& view);
std::string pipeline_section(const PageView& view);
std::string maps_section(const PageView& view);
std::string invariants_section(const PageView& view);
std::string check_section(const PageView& view);
std::string provenance_section(const PageView& view);
std::string text_section(const PageView& view);

// What the script of the page draws, as JSON.
Json page_data(const PageView& view);

// The lines of a source around `line`, which is marked, with those of `also`; empty where it cannot be read.
std::string source_excerpt(const std::string& path, int line, int around,
                           const std::vector<int>& also = {});

}  // namespace attn_diag::report

// Flags of attn-diag report, besides those of a case and of files.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct ReportFlags {
  std::string png;
  bool no_check = false;
};

inline constexpr const char* kReportSummary =
    "One page of what is known of a case: verdict, line, bug, heat maps";
inline constexpr const char* kReportFooter = R"(
With --kernel it traces, diagnoses and checks; of a file it compares and diagnoses, and says what a file cannot
tell. -o writes one HTML file that needs nothing beside it and fetches nothing; without it the verdict and the
pictures go to the terminal. Maps are reduced to 128 x 128 cells, the worst of each group; single values are kept
around the first and the worst wrong cell (docs/report.md).

Examples:
  attn-diag report x.h5
  attn-diag report x.h5 -o report.html --png map.png
  attn-diag report --kernel split_k@reduce-counts-l-twice --mask causal -o report.html

Exit codes: 0 agrees; 1 diverges, or is latent; 2 could not compare, or not write; 3 internal error.)";

void add_report_flags(CLI::App& app, ReportFlags& flags);

}  // namespace attn_diag::cli

// Findings that a user has looked at and does not want counted.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/check_kernel.h"
#include "harness/report/check_report.h"

namespace attn_diag::report {

// One line of a suppression file.
struct Suppression {
  std::string kind, array, place;  // globs, of which * stands for anything
  std::string reason;
  int line = 0;
};

// Lines "KIND ARRAY PLACE # REASON". PLACE is matched against "file.cu:12" of either access, by the end of
// its path. Empty lines and lines that begin with # are skipped. Throws Error naming the file and the line
// for what is not so, and for a missing reason.
std::vector<Suppression> parse_suppressions(const std::string& text, const std::string& file);
std::vector<Suppression> read_suppressions(const std::string& file);

// Moves the findings that a line names out of the view's result, and notes lines that named none.
void apply_suppressions(const std::vector<Suppression>& suppressions, const std::string& file,
                        CheckView& view);

}  // namespace attn_diag::report

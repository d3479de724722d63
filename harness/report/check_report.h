// What attn-diag check found, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/check_kernel.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// A finding that a line of the suppression file names.
struct SuppressedFinding {
  host::CheckFinding finding;
  std::string reason;
  int line = 0;  // of the file
};

struct CheckView {
  CheckResult result;  // its findings are those that stand
  std::vector<SuppressedFinding> suppressed;
  std::vector<std::string> unused_suppressions;  // "FILE:3: race sK kernel.cu:10"
  std::string kernel;                            // as typed
  Problem problem;
  std::string schedule;
  std::string reproduce;  // one shell line

  int count(host::Severity severity) const;
  bool clean() const;  // nothing of severity error or latent
};

struct CheckTextOptions {
  Style style;
  bool verdict_only = false;
};

// One line without its newline: "FOUND: 2 errors, 1 latent, 0 benign" or "CLEAN: ...".
std::string check_headline(const CheckView& view);
std::string check_text(const CheckView& view, const CheckTextOptions& options);
Json check_json(const CheckView& view, const CommandContext& context);

}  // namespace attn_diag::report

// A comparison as attn-diag compare and Python report it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "harness/report/json.h"
#include "harness/report/junit.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// Whether two dumps come from one and the same binary: then no edit between them is in either.
struct Binaries {
  std::string actual, expected;  // build ids
  bool same() const { return !actual.empty() && actual == expected; }
};

// What is reported, and what stands around it. Commands are shell lines, or empty.
struct ComparisonView {
  const Comparison* comparison = nullptr;
  const Capture* capture = nullptr;  // of one case against the reference
  std::string actual;                // what was compared: "x.h5", "o"
  std::string expected;              // with what; empty: the reference
  std::string rule;                  // what "agrees" means here
  bool exact = false;
  std::optional<Binaries> binaries;  // of two dumps
  // For arrays of another program: what was assumed about its unknown kernel.
  std::optional<std::vector<std::string>> assumed;
  std::string reproduce, look;

  Answer answer() const;
};

// "the rounding bound", or "|a - r| <= 0.001 + 0.01*|r|".
std::string rule_text(const Tolerance& tolerance);

// One line without its newline: "DIVERGES: o differs from the reference in elements 12 / 1,024 (1.2%), ...".
std::string comparison_headline(const ComparisonView& view);
std::string comparison_text(const ComparisonView& view, const Style& style, bool verdict_only);
Json comparison_json(const ComparisonView& view, const CommandContext& context);
std::vector<JunitCase> comparison_junit(const ComparisonView& view);

}  // namespace attn_diag::report

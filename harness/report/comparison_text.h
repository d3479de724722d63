// Comparisons as text.
#pragma once

#include <string>

#include "attn_diag/harness/compare.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// "agrees" in green, "DIVERGES" in red.
std::string verdict_text(bool agrees, const Style& style);

// "1,204 / 8,192 (14.7%)"
std::string mismatched_text(std::int64_t mismatched, std::int64_t compared);

// One line per tensor.
std::string tensor_table(const Comparison& comparison, const Style& style);

// "Mismatched elements: ...", "Greatest absolute difference: ...", as torch has them.
std::string difference_lines(const TensorComparison& t);

// What is on disk is not what was built: empty unless stale. Where sources cannot be found, one
// line saying that staleness is unknown.
std::string stale_text(const Provenance& provenance, const Style& style);
std::string sources_missing_text(const Provenance& provenance, const Style& style);

// Cells never or repeatedly written, a line per tensor that has any.
std::string coverage_text(const Capture& capture, const Style& style);

// The tensors the kernel declares it cannot show, with its reasons.
std::string exempt_text(const Capture& capture);

// "An all-zeros o would have scored 8.1e+05x: this test can fail."
std::string zeros_text(const Comparison& comparison);

}  // namespace attn_diag::report

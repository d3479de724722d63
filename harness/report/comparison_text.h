// Comparisons as text.
#pragma once

#include <string>

#include "attn_diag/harness/compare.h"
#include "harness/report/summary.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// "agrees" in green, "DIVERGES" in red, "not judged" in yellow.
std::string verdict_text(Answer answer, const Style& style);
// The colour of a headline with this verdict.
Colour colour_of(Answer answer);

// "all 1,360 elements", or "the 1,088 of 1,360 elements that can be judged".
std::string judged_text(std::int64_t judged, std::int64_t unjudged);
// "all 2,640 elements agree, and others cannot be right: an invariant is broken there"
std::string elsewhere_text(const Summary& summary);
// The headline where there is no verdict: "COULD NOT COMPARE: none of the 256 elements of o can be judged,
// having no bound: NaN or infinity in q, k or v reaches them".
std::string could_not_compare_text(const Comparison& comparison);
// "DIVERGES: the kernel wrote k, an input: ..."; empty if it wrote none.
std::string input_writes_headline(const Capture& capture);

// "1,204 / 8,192 (14.7%)"
std::string mismatched_text(std::int64_t mismatched, std::int64_t compared);

// The greatest difference of two numbers; "-" where cells are wrong and no two numbers differ: all of these are NaN or
// infinite.
std::string greatest_text(double greatest, std::int64_t mismatched);

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

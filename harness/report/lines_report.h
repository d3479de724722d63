// The line at which a kernel leaves attention, as text and JSON.
#pragma once

#include <string>

#include "attn_diag/harness/lines.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// Below a trace's verdict; `tables`: with what variables hold and what is loaded. Empty: nothing to say.
std::string lines_text(const LineDivergence& lines, const Style& style, bool tables);

// Of a trace that found no wrong number: what of that is known.
std::string numbers_text(const LineDivergence& lines);

// What was tried, and the edit as a diff.
std::string edits_text(const TriedEdits& edits, const Style& style);

// The first suspect and what is wrong, in one line; empty: nothing is.
std::string lines_line(const LineDivergence& lines);

Json to_json(const LineDivergence& lines);
// The reverse of to_json(). Throws Error for any other text.
LineDivergence lines_of_json(const std::string& json);

}  // namespace attn_diag::report

// "Your edit changed nothing": what the run history has to say about a failing case.
#pragma once

#include <optional>
#include <string>

#include "harness/history/history.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// One line: "output bit-identical to the run before your edit (TIME; FILES): either ...".
std::string same_output_line(const SameOutput& same);
// Which of the two it is, and what shows that.
std::string same_output_proof(const SameOutput& same);
// Both, to stand before a verdict; empty if there is nothing to say.
std::string same_output_text(const std::optional<SameOutput>& same, const Style& style);
Json to_json(const std::optional<SameOutput>& same);

// The history as a table, newest last, and as JSON.
std::string history_text(const std::vector<RecordedRun>& runs, const Style& style);
Json to_json(const RecordedRun& run);

}  // namespace attn_diag::report

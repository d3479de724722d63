// The values of a variable, thread by thread, as text and JSON.
#pragma once

#include <string>

#include "harness/lines/variables.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// The verdict in one line.
std::string variable_headline(const lines::VariableTable& table, const std::string& name);
// What stands below it.
std::string variable_text(const lines::VariableTable& table, const Style& style);
Json to_json(const lines::VariableTable& table);

}  // namespace attn_diag::report

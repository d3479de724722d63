// What `attn-diag repair` found, as text and as JSON.
#pragma once

#include <string>

#include "harness/repair/repair.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

struct RepairView {
  repair::RepairResult result;
  std::string kernel;  // as typed
  Problem problem;
  std::string reproduce;  // one shell line
  bool applied = false;   // the first edit was put into the user's file
};

// One line without its newline: "REPAIRED: ..." or "NOTHING FOUND: ...".
std::string repair_headline(const RepairView& view);
std::string repair_text(const RepairView& view, const Style& style, bool verdict_only);
Json repair_json(const RepairView& view, const CommandContext& context);

}  // namespace attn_diag::report

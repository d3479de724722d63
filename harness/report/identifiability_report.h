// What given inputs can show, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/identifiability.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

struct IdentifiabilityView {
  struct One {
    std::string inputs;  // "probe", "failing.h5"
    Problem problem;
    Geometry geometry;
    Identifiability found;
  };
  std::vector<One> all;
  std::string kernel;     // whose tiles and arithmetic
  std::string reproduce;  // one shell line
};

std::string identifiability_text(const IdentifiabilityView& view, const Style& style,
                                 bool table_only);
Json identifiability_json(const IdentifiabilityView& view, const CommandContext& context);

}  // namespace attn_diag::report

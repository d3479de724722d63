// An x-ray, and properties, as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/xray.h"
#include "harness/report/json.h"
#include "harness/report/text.h"

namespace attn_diag::report {

struct XrayView {
  std::string kernel, backend;
  XrayResult xray;
  std::optional<std::vector<PropertyResult>> properties;
  std::string dump;       // path of what was written; empty: nothing
  std::string reproduce;  // one shell line

  bool broken() const;  // a property
  Answer answer() const;
};

// Properties alone: a paragraph each, or one line where the same keeps all of them from being tried.
std::string properties_text(const std::vector<PropertyResult>& all, const Style& style);
Json properties_json(const std::vector<PropertyResult>& all);

// "DIVERGES: P(0, 1, 5, 3) ...", one line.
std::string xray_headline(const XrayView& view);
std::string xray_text(const XrayView& view, const Style& style, bool verdict_only);
Json xray_json(const XrayView& view, const CommandContext& context);

}  // namespace attn_diag::report

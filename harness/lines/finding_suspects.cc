#include "harness/lines/finding_suspects.h"

#include <filesystem>

namespace attn_diag::lines {

namespace {

bool same_file(const std::string& a, const std::string& b) {
  return std::filesystem::path(a).filename() == std::filesystem::path(b).filename();
}

}  // namespace

bool FindingSuspects::suspect(const host::CheckReport& report) {
  const std::size_t before = x_out.suspects.size();
  for (const host::CheckFinding& finding : report.findings) {
    if (finding.severity != host::Severity::kError) continue;
    const std::string& array = finding.element.empty() ? finding.array : finding.element;
    suspect_access(finding.access, array, finding.message);
    if (finding.has_other) suspect_access(finding.other, array, "the other access");
    // What lies before an array is an index that is wrong; what lies behind it a guard as well.
    suspect_site(finding.access, finding.offset < 0);
    if (finding.has_other) suspect_site(finding.other, finding.offset < 0);
    if (x_out.what.empty() && x_out.suspects.size() > before) x_out.what = finding.message;
  }
  return x_out.suspects.size() > before;
}

void FindingSuspects::suspect_access(const host::CheckAccess& access, const std::string& array,
                                     const std::string& why) {
  if (access.places.empty()) return;
  const host::SourcePlace& place = access.places.front();
  suggest(place.file, place.function, place.line, 0, array, why);
}

void FindingSuspects::suspect_site(const host::CheckAccess& access, bool indices_first) {
  if (access.places.empty()) return;
  const host::SourcePlace& place = access.places.front();
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    const ValueSite& at = site(s);
    const bool accesses = at.op == ValueOp::kStore || at.op == ValueOp::kLoad ||
                          at.op == ValueOp::kLoadNumber || at.op == ValueOp::kInput;
    if (!accesses || at.line != place.line || !same_file(at.file, place.file)) continue;
    if (indices_first) suggest_indices(s, "makes an index there");
    suggest_conditions(s, "if", "decides whether that line runs");
    suggest_indices(s, "makes an index there");
    suggest_conditions(s, "loop", "decides how often that line runs");
    suggest_callers(s, "calls it");
  }
}

}  // namespace attn_diag::lines

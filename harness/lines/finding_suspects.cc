#include "harness/lines/finding_suspects.h"

#include <algorithm>
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
    if (!finding.has_other) suspect_makers(finding.access, finding.array);
    suspect_access(finding.access, array, finding.message);
    if (finding.has_other) suspect_access(finding.other, array, "the other access");
    if (finding.kind == host::CheckKind::kUninitialisedRead) suspect_stores(finding.array);
    // What lies before an array, or behind an array of known extents, is an index that is wrong; what lies behind an
    // input or an output a guard as well.
    suspect_site(finding.access, finding.offset < 0 || !finding.element.empty());
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

std::vector<std::uint32_t> FindingSuspects::sites_of(const host::CheckAccess& access) const {
  std::vector<std::uint32_t> sites;
  if (access.places.empty()) return sites;
  const host::SourcePlace& place = access.places.front();
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    const ValueSite& at = site(s);
    const bool accesses = at.op == ValueOp::kStore || at.op == ValueOp::kLoad ||
                          at.op == ValueOp::kLoadNumber || at.op == ValueOp::kInput;
    if (accesses && at.line == place.line && same_file(at.file, place.file)) sites.push_back(s);
  }
  return sites;
}

void FindingSuspects::suspect_makers(const host::CheckAccess& access, const std::string& array) {
  const std::vector<std::uint32_t> sites = sites_of(access);
  const bool named = std::any_of(sites.begin(), sites.end(),
                                 [&](std::uint32_t s) { return site(s).variable == array; });
  for (const std::uint32_t s : sites)
    if (!named || site(s).variable == array)
      suggest_what_it_is_of(s, "makes what is accessed there");
}

void FindingSuspects::suspect_stores(const std::string& array) {
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
    if (site(s).op == ValueOp::kStore && site(s).variable == array) suggest_late_loops(s);
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
    if (site(s).op == ValueOp::kStore && site(s).variable == array) {
      suggest(s, "stores to it");
      suggest_conditions(s, nullptr, "decides what is stored to it");
      suggest_indices(s, "makes the index of a store to it");
    }
}

void FindingSuspects::suspect_site(const host::CheckAccess& access, bool indices_first) {
  for (const std::uint32_t s : sites_of(access)) {
    if (indices_first) {
      suggest_indices(s, "makes an index there");
      suggest_conditions(s, "loop", "decides how often that line runs");
    }
    // The nearest guard, what the index is computed from, then whatever else decides.
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop) {
        suggest(s, condition.at, "decides whether that line runs");
        break;
      }
    suggest_computed(s, variables_in(site(s).uses, ','), "makes an index there");
    suggest_conditions(s, "if", "decides whether that line runs");
    suggest_indices(s, "makes an index there");
    suggest_conditions(s, "loop", "decides how often that line runs");
    suggest_callers(s, "calls it");
  }
}

}  // namespace attn_diag::lines

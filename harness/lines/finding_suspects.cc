#include "harness/lines/finding_suspects.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace attn_diag::lines {

namespace {

bool same_file(const std::string& a, const std::string& b) {
  return std::filesystem::path(a).filename() == std::filesystem::path(b).filename();
}

// Of "sQ[30][32]" the numbers.
std::vector<long> indices_of(const std::string& element) {
  std::vector<long> out;
  for (std::size_t at = element.find('['); at != element.npos; at = element.find('[', at + 1))
    out.push_back(std::strtol(element.c_str() + at + 1, nullptr, 10));
  return out;
}

// Whether what was accessed is the one behind the last.
bool is_one_past(const host::CheckFinding& finding) {
  if (finding.kind != host::CheckKind::kOutOfBounds) return false;
  const std::vector<long> at = indices_of(finding.element), extents = indices_of(finding.extents);
  for (std::size_t i = 0; i < std::min(at.size(), extents.size()); ++i)
    if (at[i] == extents[i]) return true;
  return finding.message.find("right behind the end of") != std::string::npos;
}

bool has_out_of_bounds(const host::CheckReport& report) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [](const host::CheckFinding& finding) {
                       return finding.severity == host::Severity::kError &&
                              finding.kind == host::CheckKind::kOutOfBounds;
                     });
}

}  // namespace

bool FindingSuspects::suspect(const host::CheckReport& report) {
  const std::size_t before = x_out.suspects.size();
  suspect_missing_barrier(report);
  for (const host::CheckFinding& finding : report.findings) {
    if (finding.severity != host::Severity::kError) continue;
    const std::string& array = finding.element.empty() ? finding.array : finding.element;
    if (is_one_past(finding)) suspect_last_step(finding);
    if (finding.kind == host::CheckKind::kUninitialisedRead && !has_out_of_bounds(report))
      suspect_left_out(finding.array);
    // One row of an array, or one number.
    const auto row = static_cast<std::uint64_t>(x_attention.problem().head_dim);
    if (x_graph.whole_blocks && finding.offset == 0 && finding.folded < row) suspect_mask(finding);
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

void FindingSuspects::suspect_missing_barrier(const host::CheckReport& report) {
  std::optional<Gap> gap;
  std::string array;
  for (const host::CheckFinding& finding : report.findings) {
    if (finding.severity != host::Severity::kError) continue;
    // What is out of bounds, and what two threads write, is an index; a copy wants its own wait.
    if (finding.kind == host::CheckKind::kOutOfBounds ||
        finding.kind == host::CheckKind::kAsyncCopy)
      return;
    if (finding.kind != host::CheckKind::kRace || !finding.has_other) continue;
    if (finding.access.write && finding.other.write) return;
    const std::optional<Gap> one = gap_of(finding);
    if (!one) return;
    if (!gap) {
      gap = one;
      array = finding.array;
    } else if (one->file == gap->file && one->goes_round == gap->goes_round) {
      // What lies in all of them.
      const int begin =
          gap->goes_round ? std::min(gap->begin, one->begin) : std::max(gap->begin, one->begin);
      const int end = gap->goes_round ? std::max(gap->end, one->end) : std::min(gap->end, one->end);
      if (begin < end) {
        gap->begin = begin;
        gap->end = end;
      } else if (!gap->goes_round && begin < std::min(gap->last, one->last)) {
        // Within the loop that one of them is before.
        if (one->begin > gap->begin) gap = one;
      }
    }
  }
  if (!gap) return;
  const std::string why = "a barrier is missing ";
  if (gap->goes_round) {
    suggest(gap->file, "", gap->end, 0, array, why + "behind it");
    suggest(gap->file, "", gap->begin, 0, array, why + "before it");
  } else {
    suggest(gap->file, "", gap->begin, 0, array, why + "behind it");
    suggest(gap->file, "", gap->end, 0, array, why + "before it");
  }
}

std::optional<FindingSuspects::Gap> FindingSuspects::gap_of(const host::CheckFinding& race) {
  const host::CheckAccess *first = &race.access, *second = &race.other;
  if (first->places.empty() || second->places.empty() || first->block != second->block)
    return std::nullopt;
  // Of one function, or as the kernel calls them.
  const bool one_function = first->places.front().function == second->places.front().function;
  const auto place_of = [&](const host::CheckAccess& access) -> const host::SourcePlace& {
    return one_function ? access.places.front() : access.places.back();
  };
  if (place_of(*first).file != place_of(*second).file) return std::nullopt;
  if (place_of(*first).line > place_of(*second).line) std::swap(first, second);
  const int a = place_of(*first).line, b = place_of(*second).line;
  Gap gap;
  gap.file = place_of(*first).file;
  gap.begin = statement_of(*first, *second, a, true);
  gap.end = statement_of(*second, *first, b, false);
  gap.last = b;
  if (gap.begin >= gap.end || a == b) return std::nullopt;
  if (x_text.has_barrier(gap.file, gap.begin, gap.end)) {
    gap.goes_round = true;
    gap.begin = statement_of(*first, *second, a, false);
    gap.end = statement_of(*second, *first, b, true);
    if (!in_one_loop(*first, *second)) return std::nullopt;
  }
  return gap;
}

std::vector<Condition> FindingSuspects::conditions_of(const host::CheckAccess& access) const {
  const std::vector<std::uint32_t> sites = sites_of(access);
  return sites.empty() ? std::vector<Condition>{} : conditions_in(site(sites.front()).conditions);
}

bool FindingSuspects::is_among(const Condition& condition, const std::vector<Condition>& others) {
  return std::any_of(others.begin(), others.end(), [&](const Condition& one) {
    return one.at.line == condition.at.line && one.at.file == condition.at.file;
  });
}

bool FindingSuspects::in_one_loop(const host::CheckAccess& a, const host::CheckAccess& b) const {
  const std::vector<Condition> others = conditions_of(b), all = conditions_of(a);
  return std::any_of(all.begin(), all.end(), [&](const Condition& condition) {
    return condition.loop && is_among(condition, others);
  });
}

int FindingSuspects::statement_of(const host::CheckAccess& access, const host::CheckAccess& other,
                                  int line, bool its_end) {
  const std::vector<Condition> others = conditions_of(other);
  const std::string& file = access.places.back().file;
  int out = its_end ? x_text.end_of_statement(file, line) : line;
  for (const Condition& condition : conditions_of(access)) {
    const int at = condition.at.line;
    // A guard with a return is no statement around it.
    if (is_among(condition, others) || at > line || x_text.end_of_statement(file, at) < line)
      continue;
    out = its_end ? std::max(out, x_text.end_of_statement(file, at)) : std::min(out, at);
  }
  return out;
}

void FindingSuspects::suspect_last_step(const host::CheckFinding& finding) {
  for (const std::uint32_t s : sites_of(finding.access))
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop ? goes_up_to(text_of(s, condition.at))
                         : lets_the_end_through(text_of(s, condition.at)))
        suggest(s, condition.at, "lets the index go one step too far");
}

void FindingSuspects::suspect_mask(const host::CheckFinding& finding) {
  for (const std::uint32_t s : sites_of(finding.access))
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop)
        return suggest(s, condition.at, "lets through what lies right behind the end");
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

void FindingSuspects::suspect_left_out(const std::string& array) {
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
    if (site(s).op == ValueOp::kStore && site(s).variable == array) suggest_late_loops(s);
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    if (site(s).op != ValueOp::kStore || site(s).variable != array) continue;
    std::vector<NamedLine> of_thread = variables_in(site(s).uses, ',');
    std::erase_if(of_thread, [&](const NamedLine& use) {
      return use.line == site(s).line || use.sources.find('t') == std::string::npos;
    });
    suggest_computed(s, of_thread, "makes the index of a store to it");
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop) {
        suggest(s, condition.at, "decides what is stored to it");
        break;
      }
    suggest(s, "stores to it");
  }
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

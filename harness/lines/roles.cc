#include "harness/lines/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/index_ranges.h"
#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

using host::ValueNode;
using host::ValueOp;
using host::ValueSite;

namespace {

std::string times(float factor) {
  return std::fabs(factor - 1) < 1e-6F ? "" : fmt::format(", times {:.4g}", factor);
}

std::string text_of(const Terms& terms, const Term& term) {
  const bool several = term.kind == TermKind::kWeight && terms.keys().count(term.set) > 1;
  switch (term.kind) {
    case TermKind::kNumber:
      return "a number";
    case TermKind::kElement:
      return kBuffers[term.buffer] + times(term.x);
    case TermKind::kScore:
      if (terms.columns().count(term.set) < terms.columns().size())
        return "parts of scores" + times(term.x);
      return (term.shifted ? "scores less a number" : "scores") + times(term.x);
    case TermKind::kWeight:
      if (term.column == kNone) return several ? "l: sums of weights" : "P: weights";
      return several ? "o: weighted sums of v" : "weights times v";
    case TermKind::kInverse:
      return "1 / l";
    case TermKind::kLog:
      return "ln l, or lse";
    case TermKind::kIll:
      return term.ill == Ill::kUnwatched ? NumberSuspects::ill_text(term.ill) : "";
  }
  return "";
}

LinePlace place_of(const ValueSite& site) {
  return {site.file, site.function, site.line, site.column, "", site.variable};
}

std::string range_text(const std::set<std::uint32_t>& numbers, std::uint32_t of) {
  const std::vector<std::int64_t> sorted(numbers.begin(), numbers.end());
  return fmt::format("{} of {}", index_ranges(sorted), of);
}

}  // namespace

void describe(const Terms& terms, LineDivergence& out) {
  const host::ValueGraph& graph = terms.graph();
  const Problem& problem = terms.attention().problem();
  struct Held {
    std::int64_t all = 0;
    std::map<std::string, std::int64_t> counts;
  };
  struct Read {
    std::set<std::uint32_t> rows, columns;
  };
  std::map<std::uint32_t, Held> held;
  std::map<std::pair<std::uint32_t, int>, Read> reads;
  std::array<std::set<std::uint32_t>, 3> all_rows, all_columns;
  for (std::uint32_t n = 1; n < graph.nodes.size(); ++n) {
    const ValueNode& node = graph.nodes[n];
    if (node.site == 0) continue;
    const Term& term = terms[n];
    const ValueSite& site = graph.sites[node.site];
    if (node.is_input()) {
      if (site.line == 0) continue;
      const std::uint32_t positions =
          static_cast<std::uint32_t>(term.buffer == 0 ? problem.seqlen_q : problem.seqlen_k);
      all_rows[term.buffer].insert(term.row % positions);
      all_columns[term.buffer].insert(term.column);
      Read& read = reads[{node.site, term.buffer}];
      read.rows.insert(term.row % positions);
      read.columns.insert(term.column);
      continue;
    }
    if (site.variable.empty() || site.variable.rfind("attn_diag_", 0) == 0 ||
        site.op == ValueOp::kLoad || site.op == ValueOp::kLoadNumber)
      continue;
    Held& one = held[node.site];
    ++one.all;
    ++one.counts[text_of(terms, term)];
  }
  for (const auto& [site, one] : held) {
    const auto most =
        std::max_element(one.counts.begin(), one.counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    out.roles.push_back({place_of(graph.sites[site]),
                         most->first.empty() ? "nothing that is known" : most->first, one.all,
                         static_cast<double>(most->second) / static_cast<double>(one.all)});
  }
  std::stable_sort(out.roles.begin(), out.roles.end(), [](const LineRole& a, const LineRole& b) {
    return std::tie(a.place.file, a.place.line, a.place.column) <
           std::tie(b.place.file, b.place.line, b.place.column);
  });
  // One variable a line.
  out.roles.erase(std::unique(out.roles.begin(), out.roles.end(),
                              [](const LineRole& a, const LineRole& b) {
                                return a.place.file == b.place.file &&
                                       a.place.line == b.place.line &&
                                       a.place.variable == b.place.variable && a.holds == b.holds;
                              }),
                  out.roles.end());
  const auto size_of_rows = [&](int buffer) {
    return static_cast<std::uint32_t>(buffer == 0 ? problem.seqlen_q : problem.seqlen_k);
  };
  const auto size_of_columns = [&](int buffer) {
    return static_cast<std::uint32_t>(buffer == 2 ? problem.head_dim_v : problem.head_dim);
  };
  for (const auto& [at, read] : reads)
    out.reads.push_back({place_of(graph.sites[at.first]), kBuffers[at.second],
                         range_text(read.rows, size_of_rows(at.second)),
                         range_text(read.columns, size_of_columns(at.second))});
  std::stable_sort(out.reads.begin(), out.reads.end(), [](const LineReads& a, const LineReads& b) {
    return std::tie(a.place.file, a.place.line) < std::tie(b.place.file, b.place.line);
  });
  for (int buffer = 0; buffer < 3; ++buffer) {
    terms.for_each_loaded_elsewhere(buffer, [&](std::uint32_t, std::uint32_t column) {
      all_columns[static_cast<std::size_t>(buffer)].insert(column);
    });
    std::vector<std::int64_t> columns;
    for (std::uint32_t d = 0; d < size_of_columns(buffer); ++d)
      if (all_columns[static_cast<std::size_t>(buffer)].count(d) == 0) columns.push_back(d);
    const bool cut = graph.full || !graph.unwatched.empty();
    if (!cut && !columns.empty() && columns.size() < size_of_columns(buffer))
      out.unread.push_back(fmt::format("columns {} of {} are loaded by no line",
                                       index_ranges(columns), kBuffers[buffer]));
  }
}

}  // namespace attn_diag::lines

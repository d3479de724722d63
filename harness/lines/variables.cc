#include "harness/lines/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

#include "harness/lines/graph_walk.h"
#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

namespace {

// Twice what rounding of weights to bf16 makes of a sum of them: beyond it a value is marked.
constexpr double kSlack = 1.0 / 128;

// "s" of "s", "s[4][0]" and "s.x"
std::string_view base_name(std::string_view variable) {
  return variable.substr(0, std::min(variable.find_first_of(".["), variable.size()));
}

bool shows(const host::ValueSite& site) {
  return site.line != 0 && !site.variable.empty() && site.op != host::ValueOp::kLoad &&
         site.op != host::ValueOp::kLoadNumber && site.op != host::ValueOp::kInput &&
         site.variable.rfind("attn_diag_", 0) != 0;
}

class Reader : public Walk {
 public:
  using Walk::Walk;

  VariableValue value_of(std::uint32_t n) const {
    const ValueSite& at = site(node(n).site);
    VariableValue out;
    out.place = {at.file, at.function, at.line, at.column, "", at.variable};
    out.thread = node(n).where & 1023;
    out.value = node(n).value;
    const Term& term = x_terms[n];
    if (term.ill == Ill::kUnwatched) {
      out.holds = NumberSuspects::ill_text(term.ill);
      return out;
    }
    if (term.kind == TermKind::kIll) {
      out.wrong = true;
      out.holds = NumberSuspects::ill_text(term.ill);
      if (term.root != n) {
        out.follows = true;
        const ValueSite& began = site(node(term.root).site);
        out.holds = fmt::format("made of what line {} made: {}", began.line, out.holds);
      }
      return out;
    }
    out.holds = quantity(term);
    judge(term, out);
    return out;
  }

 private:
  std::string factor_text(float x) const {
    return std::fabs(x - 1) < 1e-6F ? "" : fmt::format("{:.4g} ", x);
  }

  std::string query(std::uint32_t row) const {
    const std::string text = query_text(row);
    return text;
  }

  std::string keys(const Term& term) const {
    std::vector<unsigned> all;
    for (unsigned j = 0; j < x_terms.keys().size(); ++j)
      if (x_terms.keys().has(term.set, j)) all.push_back(j);
    return all.empty() ? "no key" : keys_text(all);
  }

  std::string quantity(const Term& term) const {
    switch (term.kind) {
      case TermKind::kElement:
        return term.buffer == 0 ? fmt::format("{}q[{}, column {}]", factor_text(term.x),
                                              query(term.row), term.column)
                                : fmt::format("{}{}[key {}, column {}]", factor_text(term.x),
                                              term.buffer == 1 ? "k" : "v",
                                              x_attention.key_of(term.row), term.column);
      case TermKind::kScore: {
        const unsigned columns = x_terms.columns().count(term.set);
        const std::string of =
            columns == x_terms.columns().size()
                ? ""
                : fmt::format(", {} of {} columns", columns, x_terms.columns().size());
        return fmt::format("{}q.k[{}, key {}{}]{}", factor_text(term.x), query(term.row),
                           x_attention.key_of(term.column), of,
                           term.shifted ? " less a number" : "");
      }
      case TermKind::kWeight: {
        const bool several = x_terms.keys().count(term.set) > 1;
        if (term.column == kNone)
          return fmt::format("{}[{}, {}]", several ? "l" : "P", query(term.row), keys(term));
        return fmt::format("{}[{}, dim {}, {}]", several ? "o" : "P v", query(term.row),
                           term.column, keys(term));
      }
      case TermKind::kInverse:
        return fmt::format("1 / l[{}, {}]", query(term.row), keys(term));
      case TermKind::kLog:
        return fmt::format("ln l[{}, {}]", query(term.row), keys(term));
      default:
        return "a number";
    }
  }

  // What the quantity is in exact arithmetic.
  void judge(const Term& term, VariableValue& out) const {
    double expected = 0, size = 0;
    const auto add = [&](double x) {
      expected += x;
      size += std::fabs(x);
    };
    switch (term.kind) {
      case TermKind::kElement:
        add(term.x * x_attention.element(term.buffer, term.row, term.column));
        break;
      case TermKind::kScore:
        if (term.shifted) return;
        for (unsigned d = 0; d < x_terms.columns().size(); ++d)
          if (x_terms.columns().has(term.set, d))
            add(term.x * x_attention.element(0, term.row, d) *
                x_attention.element(1, term.column, d));
        break;
      case TermKind::kWeight:
      case TermKind::kInverse:
        for (unsigned j = 0; j < x_terms.keys().size(); ++j)
          if (x_terms.keys().has(term.set, j)) {
            const std::uint32_t at = key_row(term.row, j);
            const double weight = std::exp(x_attention.score(term.row, at) - double{term.x});
            add(term.column == kNone || term.kind == TermKind::kInverse
                    ? weight
                    : weight * x_attention.element(2, at, term.column));
          }
        if (term.kind == TermKind::kInverse) expected = size = 1 / expected;
        break;
      default:
        return;
    }
    // For 16 bits that were only moved the graph has no value.
    if (out.value == 0 && term.kind == TermKind::kElement) out.value = expected;
    out.expected = expected;
    out.wrong = !(std::fabs(out.value - expected) <= kSlack * size + 1e-30);
  }
};

}  // namespace

std::vector<VariableValue> values_of(const Terms& terms, const VariableQuery& query,
                                     std::uint32_t block) {
  const host::ValueGraph& graph = terms.graph();
  const Reader reader(terms);
  std::vector<VariableValue> values;
  for (std::uint32_t n = 1; n < graph.nodes.size(); ++n) {
    const host::ValueNode& node = graph.nodes[n];
    if (node.site == 0 || node.is_input() || node.where >> 10 != block) continue;
    const host::ValueSite& site = graph.sites[node.site];
    if (!shows(site) || (site.variable != query.name && base_name(site.variable) != query.name) ||
        (query.line != 0 && site.line != query.line))
      continue;
    values.push_back(reader.value_of(n));
  }
  std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
    return std::tie(a.place.file, a.place.line, a.thread) <
           std::tie(b.place.file, b.place.line, b.thread);
  });
  return values;
}

std::vector<std::string> variable_names(const host::ValueGraph& graph) {
  std::set<std::string> names;
  for (const host::ValueSite& site : graph.sites)
    if (site.ran && shows(site)) names.emplace(base_name(site.variable));
  return {names.begin(), names.end()};
}

}  // namespace attn_diag::lines

#include "harness/capture/cell_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "harness/base/index_ranges.h"

namespace attn_diag {
namespace {

constexpr std::int64_t kPeriods = 2;  // of a rule, seen at least
constexpr std::int64_t kMostLabels = 4096;
constexpr double kLeastHeld = 0.98;   // of the marked cells, by a rule
constexpr double kLeastSaved = 0.25;  // of the bits without a rule
constexpr double kLeastBits = 32;
constexpr std::size_t kMostClauses = 3;  // "q mod 16 is ... and dim mod 16 is ..., or ..."
constexpr std::int64_t kLanes = 32;

// A way to give cells labels: (row label) x (column label).
struct Feature {
  std::string row, column;  // "q mod 16", "dim mod 8"; row is empty where there is one row label
  std::int64_t rows = 1, columns = 1;
  std::function<std::int64_t(std::int64_t query, std::int64_t column)> label;
};

struct Rule {
  const Feature* feature = nullptr;
  std::vector<std::uint8_t> inside;  // by label
  std::int64_t marked_inside = 0, marked_outside = 0, others_inside = 0, others_outside = 0;
  double bits = 0;
};

double entropy_bits(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  return -(x * std::log2(x / (x + y)) + y * std::log2(y / (x + y)));
}

Feature by_columns(const MarkedCells& c, std::int64_t modulus) {
  Feature f;
  f.column = modulus == c.columns ? "dim" : fmt::format("dim mod {}", modulus);
  f.columns = modulus;
  f.label = [modulus](std::int64_t, std::int64_t d) { return d % modulus; };
  return f;
}

Feature by_block(std::int64_t rows, std::int64_t columns) {
  Feature f;
  f.row = fmt::format("q mod {}", rows);
  f.column = fmt::format("dim mod {}", columns);
  f.rows = rows;
  f.columns = columns;
  f.label = [=](std::int64_t q, std::int64_t d) { return q % rows * columns + d % columns; };
  return f;
}

// Which 16 rows of a query tile, and which column: what a warp owns where warps have 16 rows each.
Feature by_warp_rows(const MarkedCells& c) {
  Feature f;
  f.row = fmt::format("(q mod {}) / 16", c.block_m);
  f.column = "dim";
  f.rows = c.block_m / 16;
  f.columns = c.columns;
  f.label = [block = c.block_m, n = c.columns](std::int64_t q, std::int64_t d) {
    return q % block / 16 * n + d;
  };
  return f;
}

// `threads` that take `elements` each in turn, in row-major order.
Feature by_thread(const MarkedCells& c, std::int64_t threads, std::int64_t elements) {
  Feature f;
  f.column = elements == 1
                 ? fmt::format("(q * {} + dim) mod {}", c.columns, threads)
                 : fmt::format("(q * {} + dim) / {} mod {}", c.columns, elements, threads);
  f.columns = threads;
  f.label = [=, n = c.columns](std::int64_t q, std::int64_t d) {
    return (q * n + d) / elements % threads;
  };
  return f;
}

// The simplest first.
std::vector<Feature> features(const MarkedCells& c) {
  std::vector<Feature> all;
  for (const std::int64_t n : {2, 4, 8, 16, 32, 64})
    if (c.columns >= kPeriods * n) all.push_back(by_columns(c, n));
  all.push_back(by_columns(c, c.columns));
  const std::int64_t queries =
      c.query.empty() ? 0 : *std::max_element(c.query.begin(), c.query.end()) + 1;
  for (const auto& [rows, columns] : {std::pair{8, 8}, {16, 8}, {8, 16}, {16, 16}, {32, 32}})
    if (c.columns >= columns && queries >= kPeriods * rows) all.push_back(by_block(rows, columns));
  if (c.block_m > 16 && c.block_m % 16 == 0 && queries >= c.block_m) all.push_back(by_warp_rows(c));
  for (const std::int64_t threads : {32, 64, 128, 256})
    for (const std::int64_t elements : {1, 2, 4, 8})
      if (threads * elements > c.columns && queries * c.columns >= kPeriods * threads * elements)
        all.push_back(by_thread(c, threads, elements));
  std::erase_if(all, [](const Feature& f) { return f.rows * f.columns > kMostLabels; });
  return all;
}

std::vector<std::int64_t> columns_of(const Rule& rule, std::int64_t row) {
  std::vector<std::int64_t> in;
  const std::int64_t n = rule.feature->columns;
  for (std::int64_t d = 0; d < n; ++d)
    if (rule.inside[static_cast<std::size_t>(row * n + d)] != 0) in.push_back(d);
  return in;
}

// Row labels with the same columns, for each such set that is not empty.
using Clause = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;

std::vector<Clause> clauses_of(const Rule& rule) {
  std::vector<Clause> clauses;
  for (std::int64_t i = 0; i < rule.feature->rows; ++i) {
    std::vector<std::int64_t> columns = columns_of(rule, i);
    if (columns.empty()) continue;
    const auto same = std::find_if(clauses.begin(), clauses.end(),
                                   [&](const Clause& clause) { return clause.second == columns; });
    if (same == clauses.end())
      clauses.push_back({{i}, std::move(columns)});
    else
      same->first.push_back(i);
  }
  return clauses;
}

std::int64_t runs(const std::vector<std::int64_t>& sorted) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) n += i == 0 || sorted[i] != sorted[i - 1] + 1;
  return n;
}

// To say the rule: two ends of each range of labels.
double length_bits(const Rule& rule) {
  const Feature& f = *rule.feature;
  double bits = 0;
  for (const auto& [rows, columns] : clauses_of(rule)) {
    if (f.rows > 1)
      bits += 2 * static_cast<double>(runs(rows)) * std::log2(static_cast<double>(f.rows));
    bits += 2 * static_cast<double>(runs(columns)) * std::log2(static_cast<double>(f.columns));
  }
  return bits;
}

// The labels of which at least half as many cells are marked as of the fullest.
Rule rule_by(const Feature& feature, const MarkedCells& c) {
  const auto labels = static_cast<std::size_t>(feature.rows * feature.columns);
  std::vector<std::int64_t> marked(labels, 0), all(labels, 0);
  const auto n = static_cast<std::size_t>(c.columns);
  for (std::size_t r = 0; r < c.query.size(); ++r)
    for (std::size_t d = 0; d < n; ++d) {
      const auto at =
          static_cast<std::size_t>(feature.label(c.query[r], static_cast<std::int64_t>(d)));
      ++all[at];
      marked[at] += c.marked[r * n + d] != 0;
    }
  const auto share = [&](std::size_t i) {
    return all[i] == 0 ? 0.0 : static_cast<double>(marked[i]) / static_cast<double>(all[i]);
  };
  double fullest = 0;
  for (std::size_t i = 0; i < labels; ++i) fullest = std::max(fullest, share(i));
  Rule rule;
  rule.feature = &feature;
  for (std::size_t i = 0; i < labels; ++i) {
    const bool inside = fullest > 0 && share(i) >= fullest / 2;
    rule.inside.push_back(inside ? 1 : 0);
    (inside ? rule.marked_inside : rule.marked_outside) += marked[i];
    (inside ? rule.others_inside : rule.others_outside) += all[i] - marked[i];
  }
  rule.bits = entropy_bits(rule.marked_inside, rule.others_inside) +
              entropy_bits(rule.marked_outside, rule.others_outside) + length_bits(rule);
  return rule;
}

std::string count_text(std::int64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// "q mod 8 is dim mod 8" and the like, of square blocks.
std::string diagonal_text(const Rule& rule) {
  const Feature& f = *rule.feature;
  if (f.rows != f.columns) return "";
  const auto all = [&](auto is_inside) {
    for (std::int64_t i = 0; i < f.rows; ++i)
      for (std::int64_t d = 0; d < f.columns; ++d)
        if ((rule.inside[static_cast<std::size_t>(i * f.columns + d)] != 0) != is_inside(i, d))
          return false;
    return true;
  };
  const char* relation = all([](auto i, auto d) { return i != d; })   ? "is not"
                         : all([](auto i, auto d) { return i == d; }) ? "is"
                         : all([](auto i, auto d) { return i < d; })  ? "is less than"
                         : all([](auto i, auto d) { return i > d; })  ? "is more than"
                                                                      : nullptr;
  return relation == nullptr ? "" : fmt::format("{} {} {}", f.row, relation, f.column);
}

// The lanes that hold these places of 8 x 8 blocks in an accumulator of mma.m16n8, if no lane holds others.
std::string lanes_text(const Rule& rule) {
  const Feature& f = *rule.feature;
  if (f.rows % 8 != 0 || f.columns % 8 != 0) return "";
  std::vector<int> kinds(static_cast<std::size_t>(kLanes), 0);  // 1: inside, 2: outside, 3: both
  for (std::int64_t i = 0; i < f.rows; ++i)
    for (std::int64_t d = 0; d < f.columns; ++d)
      kinds[static_cast<std::size_t>(i % 8 * 4 + d % 8 / 2)] |=
          rule.inside[static_cast<std::size_t>(i * f.columns + d)] != 0 ? 1 : 2;
  std::vector<std::int64_t> lanes;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    if (kinds[static_cast<std::size_t>(lane)] == 3) return "";
    if (kinds[static_cast<std::size_t>(lane)] == 1) lanes.push_back(lane);
  }
  return fmt::format(" (what lane{} {} hold{} of an mma.m16n8 accumulator)",
                     lanes.size() == 1 ? "" : "s", index_ranges(lanes),
                     lanes.size() == 1 ? "s" : "");
}

std::string text_of(const Rule& rule) {
  const Feature& f = *rule.feature;
  const auto is = [](const std::string& what, const std::vector<std::int64_t>& in) {
    return fmt::format("{} is {}", what, index_ranges(in));
  };
  if (f.rows == 1) return is(f.column, columns_of(rule, 0));
  if (std::string diagonal = diagonal_text(rule); !diagonal.empty()) return diagonal;
  const std::vector<Clause> clauses = clauses_of(rule);
  const auto places = std::count(rule.inside.begin(), rule.inside.end(), std::uint8_t{1});
  std::string text;
  if (clauses.size() > kMostClauses)
    text = fmt::format("({}, {}) is one of {} of {} places, ", f.row, f.column, places,
                       f.rows * f.columns);
  for (std::size_t i = 0; i < std::min(clauses.size(), kMostClauses); ++i) {
    const auto& [rows, columns] = clauses[i];
    text += fmt::format("{}{}", i == 0 ? "" : ", or ", is(f.row, rows));
    if (static_cast<std::int64_t>(columns.size()) < f.columns)
      text += " and " + is(f.column, columns);
  }
  return text + (clauses.size() > kMostClauses ? ", ..." : "") + lanes_text(rule);
}

std::optional<std::string> rule_of_rows(const MarkedCells& c, const CellWords& words) {
  const auto marked = static_cast<std::int64_t>(
      std::count_if(c.marked.begin(), c.marked.end(), [](std::uint8_t m) { return m != 0; }));
  const auto others = static_cast<std::int64_t>(c.marked.size()) - marked;
  if (marked == 0 || others == 0) return std::nullopt;
  const double without = entropy_bits(marked, others);
  const std::vector<Feature> all = features(c);
  Rule best;
  for (const Feature& feature : all) {
    Rule rule = rule_by(feature, c);
    if (static_cast<double>(rule.marked_inside) < kLeastHeld * static_cast<double>(marked) ||
        rule.marked_inside < rule.others_inside)
      continue;
    if (best.feature == nullptr || rule.bits < best.bits) best = std::move(rule);
  }
  if (best.feature == nullptr || best.others_outside == 0 ||
      without - best.bits < std::max(kLeastBits, kLeastSaved * without))
    return std::nullopt;
  const double held = 100.0 * static_cast<double>(best.marked_inside) / static_cast<double>(marked);
  return fmt::format(
      "where {}, {}: {}% of {} {} cells, {} of {} {} ones", text_of(best),
      best.marked_outside == 0
          ? fmt::format("{} elsewhere", words.others)
          : fmt::format("{} of {} {} elsewhere", count_text(best.marked_outside),
                        count_text(best.marked_outside + best.others_outside), words.marked),
      best.marked_outside == 0 ? "100" : fmt::format("{:.1f}", held), count_text(marked),
      words.marked, count_text(best.others_inside), count_text(others), words.others);
}

}  // namespace

std::optional<std::string> place_rule(const MarkedCells& cells, const CellWords& words) {
  if (std::optional<std::string> rule = rule_of_rows(cells, words)) return rule;
  MarkedCells some = cells;
  some.query.clear();
  some.marked.clear();
  const auto n = static_cast<std::ptrdiff_t>(cells.columns);
  for (std::size_t r = 0; r < cells.query.size(); ++r) {
    const auto row = cells.marked.begin() + static_cast<std::ptrdiff_t>(r) * n;
    if (std::none_of(row, row + n, [](std::uint8_t m) { return m != 0; })) continue;
    some.query.push_back(cells.query[r]);
    some.marked.insert(some.marked.end(), row, row + n);
  }
  if (some.query.size() == cells.query.size()) return std::nullopt;
  std::optional<std::string> rule = rule_of_rows(some, words);
  if (rule)
    *rule +=
        fmt::format(", in the {} of {} rows that have any", some.query.size(), cells.query.size());
  return rule;
}

}  // namespace attn_diag

// F31, F34: rows of a query tile that lend each other what is their own.
#include "reference/counterfactual/catalogue_rows.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_sums.h"

namespace attn_diag::reference {
namespace {

using Kind = RowChoice::Kind;

std::string text_of(const RowChoice& choice) {
  const std::string n = std::to_string(choice.n);
  switch (choice.kind) {
    case Kind::kFirst:
      return "the first of " + n;
    case Kind::kLast:
      return "the last of " + n;
    case Kind::kFlipped:
      return "r ^ " + n;
    case Kind::kShifted:
      return choice.n < 0 ? "r - " + std::to_string(-choice.n) : "r + " + n;
    case Kind::kModulo:
      return "r % " + n;
    case Kind::kReversed:
      return n + " in reverse";
    case Kind::kOwn:
      break;
  }
  return "its own";
}

// What warps and fragments have in common: groups of 2, 4, ... rows, and parts of the tile.
std::vector<std::pair<RowChoice, ParameterValue>> choices_of(const PredictionInputs& c) {
  const std::int32_t block_m = c.geometry().tile.block_m;
  std::vector<RowChoice> choices;
  for (std::int32_t n = 1; n < block_m && n <= 16; n *= 2) choices.push_back({Kind::kFlipped, n});
  std::set<std::int32_t> groups = {2, 4, 8, 16, 32, block_m, block_m / 2, block_m / 4, block_m / 8};
  for (const std::int32_t n : groups) {
    if (n < 2 || n > block_m) continue;
    choices.push_back({Kind::kFirst, n});
    if (n >= 8) choices.push_back({Kind::kLast, n});
    // Two in reverse are each the other one.
    if (n >= 4) choices.push_back({Kind::kReversed, n});
    if (n >= 8 && n < block_m) choices.push_back({Kind::kModulo, n});
  }
  if (block_m > 2)
    for (const std::int32_t n : {1, -1}) choices.push_back({Kind::kShifted, n});
  std::vector<std::pair<RowChoice, ParameterValue>> found;
  for (const RowChoice& choice : choices) {
    bool another = false;
    for (std::int32_t r = 0; r < block_m && r < c.problem().seqlen_q; ++r)
      another = another || (choice.of(r) != r && choice.of(r) >= 0 &&
                            choice.of(r) < std::min(block_m, c.problem().seqlen_q));
    const double number = static_cast<double>(choice.kind) * 256 + choice.n;
    if (another) found.emplace_back(choice, named("row", number, text_of(choice)));
  }
  return found;
}

// Rows that a butterfly over some lanes reaches, and runs of rows.
void mixed(const PredictionInputs& c, Variants& out, bool in_loop) {
  const std::int32_t block_m = c.geometry().tile.block_m, queries = c.problem().seqlen_q;
  const auto add = [&](const MixedRows& rows, const std::string& what) {
    for (const double times : {1.0, static_cast<double>(kLanesOfWarp) / 8}) {
      // Rows of which four lanes each have the sum: those of an MMA accumulator.
      if (times != 1 && rows.bits != 7) continue;
      for (const auto& [max, sum] : {std::pair{true, true}, {false, true}, {true, false}}) {
        // At the end l and o have the same frame: another one changes neither o nor lse.
        if (!sum && (!in_loop || times != 1)) continue;
        out.with(
            [&, is_max = max, is_sum = sum](Deviation& d) {
              MixedRows& into = in_loop ? d.softmax.mixed : d.finish.mixed;
              into = rows;
              into.max = is_max;
              into.sum = is_sum;
              into.times = times;
            },
            {named("rows", rows.rows > 0 ? -rows.rows : rows.bits, what),
             named("of", max + 2 * sum,
                   max && sum ? "m and l"
                   : sum      ? "l"
                              : "m"),
             number("times", times)});
      }
    }
  };
  constexpr std::int32_t kBits = 5;
  for (std::int32_t low = 0; low < kBits; ++low)
    for (std::int32_t high = low + 1; high <= kBits; ++high) {
      const std::int32_t bits = (1 << high) - (1 << low);
      if ((1 << (high - 1)) >= std::min(block_m, queries)) continue;
      MixedRows rows;
      rows.bits = bits;
      add(rows, low == 0 ? std::to_string(1 << high)
                         : "those that differ in the bits " + std::to_string(bits));
    }
  const bool is_power = (block_m & (block_m - 1)) == 0;
  if (block_m < 2 || block_m > queries || (is_power && block_m <= 1 << kBits)) return;
  MixedRows whole;
  whole.rows = block_m;
  add(whole, std::to_string(block_m));
}

// Rows that share alpha, with how many they are. Among more, the max of one stays nearly always: that is an
// alpha that is missing.
std::vector<std::pair<MixedRows, std::int32_t>> runs_of_rows(const PredictionInputs& c) {
  std::vector<std::pair<MixedRows, std::int32_t>> runs;
  for (std::int32_t n = 2; n <= std::min(c.geometry().tile.block_m, 4); n *= 2) {
    if (n / 2 >= c.problem().seqlen_q) break;
    MixedRows rows;
    rows.bits = n - 1;
    runs.emplace_back(rows, n);
  }
  return runs;
}

void share_alpha(const MixedRows& rows, GroupAlpha how, bool of_l, Deviation& d) {
  d.recurrence.alpha_group = rows;
  d.recurrence.group_alpha = how;
  d.recurrence.alpha_row_l = of_l;
}

}  // namespace

void alphas_of_rows(const PredictionInputs& c, Variants& out) {
  if (longest_split(c) == 1) return;
  for (const auto& [row, value] : choices_of(c))
    for (const auto& [l, o] : kSums)
      out.with(
          [&, row = row, l = l, o = o](Deviation& d) {
            d.recurrence.alpha_row = row;
            d.recurrence.alpha_row_l = l;
            d.recurrence.alpha_row_o = o;
          },
          {value, of(l, o)});
  for (const auto& [rows, n] : runs_of_rows(c))
    for (const auto& [l, o] : kSums)
      if (o)
        out.with([&, rows = rows,
                  l = l](Deviation& d) { share_alpha(rows, GroupAlpha::kLargest, l, d); },
                 {named("row", -n, "the largest of " + std::to_string(n)), of(l, o)});
}

// P is in the new frame, and sums that are not rescaled there are not.
void rescales_of_rows(const PredictionInputs& c, Variants& out) {
  if (longest_split(c) == 1) return;
  for (const auto& [row, value] : choices_of(c)) {
    // A thread looks at one of the rows it holds, or a warp at that of one of its lanes.
    if (row.kind != Kind::kFirst && row.kind != Kind::kLast) continue;
    for (const bool l : {false, true})
      out.with(
          [&, row = row](Deviation& d) {
            d.recurrence.alpha_row = row;
            d.recurrence.alpha_row_l = l;
            d.recurrence.alpha_row_decides = true;
          },
          {value, of(l, true)});
  }
  for (const auto& [rows, n] : runs_of_rows(c))
    for (const bool l : {false, true})
      out.with([&, rows = rows](Deviation& d) { share_alpha(rows, GroupAlpha::kAllRise, l, d); },
               {named("row", -n, "all of " + std::to_string(n)), of(l, true)});
}

void sums_of_rows(const PredictionInputs& c, Variants& out) {
  for (const auto& [row, value] : choices_of(c))
    for (const auto& [l, m, what] : {std::tuple{false, false, "l of o"},
                                     {true, false, "l of o and of lse"},
                                     {true, true, "l of o, m and l of lse"}})
      out.with(
          [&, row = row, l = l, m = m](Deviation& d) {
            d.finish.l_row = row;
            d.finish.l_row_lse = l;
            d.finish.m_row_lse = m;
          },
          {value, named("what", l + m, what)});
}

void maxima_of_rows(const PredictionInputs& c, Variants& out) {
  for (const auto& [row, value] : choices_of(c))
    out.with([&, row = row](Deviation& d) { d.softmax.max_row = row; }, {value});
}

void probs_of_rows(const PredictionInputs& c, Variants& out) {
  for (const auto& [row, value] : choices_of(c))
    out.with([&, row = row](Deviation& d) { d.pv.row = row; }, {value});
}

void masks_of_rows(const PredictionInputs& c, Variants& out) {
  if (!masked(c)) return;
  for (const auto& [row, value] : choices_of(c))
    // The mask of the next row is mask-shift's.
    if (row.kind != Kind::kShifted)
      under_both_loops(c, out, [&, row = row](Deviation& d) { d.mask.row = row; }, {value});
}

void rows_mixed_in_loop(const PredictionInputs& c, Variants& out) { mixed(c, out, true); }
void rows_mixed_at_end(const PredictionInputs& c, Variants& out) { mixed(c, out, false); }

}  // namespace attn_diag::reference

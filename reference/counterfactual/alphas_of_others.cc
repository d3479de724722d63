// Other rows of the query tile that have a say in what a row's sums are rescaled by.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/evaluator.h"
#include "reference/infinity.h"

namespace attn_diag::reference {

Evaluator::Others Evaluator::others_of(const RowIndex& row, const RowState& state) {
  const RecurrenceChange& change = d_.recurrence;
  Others others{&state, {}, false};
  if (lending_) return others;
  const auto lend = [&](std::int32_t query) -> const RowState* {
    if (query == row.query) return nullptr;
    if (query >= 0 && query < p_.seqlen_q) return &lent({row.batch, row.head, query});
    others.strange = true;
    return nullptr;
  };
  if (!change.alpha_row.is_own()) {
    const RowState* const other = lend(chosen_query(change.alpha_row, row.query));
    if (other != nullptr && change.alpha_row_decides) others.group.push_back(other);
    if (other != nullptr && !change.alpha_row_decides) others.row = other;
  }
  if (change.group_alpha != GroupAlpha::kOwn)
    for (const std::int32_t query : mixed_queries(change.alpha_group, row.query))
      if (const RowState* const other = lend(query)) others.group.push_back(other);
  return others;
}

// What the sums of a row whose max goes from `before` to `now` are rescaled by.
Evaluator::GroupsAlpha Evaluator::alpha_of_group(std::size_t tile, const Others& others,
                                                 double before, double now) const {
  GroupsAlpha alpha{rescale(Rescale::kRight, before, now), 0};
  const bool begins = tile % static_cast<std::size_t>(g_.tiles_per_split) == 0;
  for (const RowState* other : others.group) {
    const double its_before = begins ? -kInf : other->running_m[tile - 1];
    const double its_now = other->running_m[tile], error = other->running_m_error[tile];
    if (d_.recurrence.group_alpha == GroupAlpha::kLargest) {
      const double its = rescale(Rescale::kRight, its_before, its_now);
      if (its <= alpha.value) continue;
      alpha.value = its;
      alpha.error = its * (rescale_error(its_now - its_before) + 2 * error);
    } else if (its_before > -kInf && now > before) {
      // A max that the tile's own all but reaches may rise or not.
      if (std::fabs(other->own_m[tile] - its_before) <= 2 * error) alpha.error = kNothingKnown;
      if (its_now == its_before) alpha.value = 1;
    }
  }
  return alpha;
}

}  // namespace attn_diag::reference

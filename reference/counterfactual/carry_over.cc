// What the state of a row begins with, where a block goes on with that of its last work item.
#include <algorithm>

#include "reference/counterfactual/evaluator.h"
#include "reference/infinity.h"

namespace attn_diag::reference {

// What the state holds before the row's first tile.
void Evaluator::begin(const RowIndex& row) {
  const auto dim = needs_pv_ ? static_cast<std::size_t>(dim_v_) : 0;
  before_ = {-kInf, 0, 0, 0, std::vector<double>(dim, 0.0), std::vector<double>(dim, 0.0)};
  const std::uint8_t carried = d_.recurrence.carry_over;
  if (carried == kCarryNothing) return;
  const Chain chain = chain_of(row);
  if (chain.place < chain.step) return;
  if (!in_chain_ && chain_ == nullptr) {
    // The state is that of the reduce stage, whatever is wanted of this row.
    chain_ = std::make_unique<Evaluator>(c_, d_, tensors_ | tensor_bit(Tensor::kLse));
    chain_->in_chain_ = true;
  }
  const Running& earlier = (in_chain_ ? *this : *chain_).left_before(row);
  if ((carried & kCarryM) != 0) {
    before_.m = earlier.m;
    before_.m_error = earlier.m_error;
  }
  if ((carried & kCarryL) != 0) {
    before_.l = earlier.l;
    before_.l_error = earlier.l_error;
  }
  if ((carried & (kCarryM | kCarryL)) != 0) before_.known = earlier.known;
  if ((carried & kCarryO) == 0) return;
  std::copy_n(earlier.o.data(), dim, before_.o.data());
  std::copy_n(earlier.o_error.data(), dim, before_.o_error.data());
  before_.o_known = earlier.o_known;
}

// Places that are `step` apart share a state, in this order.
Evaluator::Chain Evaluator::chain_of(const RowIndex& row) const {
  const std::int32_t distance = d_.recurrence.carry_distance, block_m = g_.tile.block_m;
  switch (d_.recurrence.carry_order) {
    case ItemOrder::kHeads:
      return {row.head, distance};
    case ItemOrder::kTilesReversed: {
      const std::int32_t tiles = ceil_div(p_.seqlen_q, block_m);
      return {(tiles - 1 - row.query / block_m) * block_m + row.query % block_m,
              distance * block_m};
    }
    case ItemOrder::kTiles:
      break;
  }
  return {row.query, distance * block_m};
}

RowIndex Evaluator::row_at(const RowIndex& row, std::int32_t place) const {
  const std::int32_t block_m = g_.tile.block_m;
  if (d_.recurrence.carry_order == ItemOrder::kHeads) return {row.batch, place, row.query};
  if (d_.recurrence.carry_order == ItemOrder::kTiles) return {row.batch, row.head, place};
  const std::int32_t tiles = ceil_div(p_.seqlen_q, block_m);
  return {row.batch, row.head, (tiles - 1 - place / block_m) * block_m + place % block_m};
}

// The state after the last tile of the row before this one in its chain. Only the last of each chain is kept:
// rows come in order.
const Running& Evaluator::left_before(const RowIndex& row) {
  const Chain chain = chain_of(row);
  const bool by_heads = d_.recurrence.carry_order == ItemOrder::kHeads;
  const RowIndex key{row.batch, by_heads ? chain.place % chain.step : row.head,
                     by_heads ? row.query : chain.place % chain.step};
  if (!left_.empty() && (left_batch_ != key.batch || (!by_heads && left_head_ != key.head)))
    left_.clear();
  left_batch_ = key.batch;
  left_head_ = key.head;
  Left& left = left_[{key.head, key.query}];
  const std::int32_t wanted = chain.place - chain.step;
  if (left.place == wanted) return left.state;
  std::int32_t place =
      left.place < 0 || left.place > wanted ? chain.place % chain.step : left.place + chain.step;
  for (; place <= wanted; place += chain.step) {
    const RowIndex from = row_at(row, place);
    if (from.query >= p_.seqlen_q) {
      // Rows of the tile past the last query hold what nobody knows.
      const auto dim = needs_pv_ ? static_cast<std::size_t>(dim_v_) : 0;
      left.state = {-kInf, 0,    0, 0, std::vector<double>(dim, 0.0), std::vector<double>(dim, 0.0),
                    false, false};
    } else {
      evaluate(from, left_state_);
      left.state = last_of(left_state_);
    }
    left.place = place;
  }
  return left.state;
}

// What a row leaves behind.
Running Evaluator::last_of(const RowState& s) const {
  const auto last = static_cast<std::size_t>(tiles_ - 1);
  const auto dim = needs_pv_ ? static_cast<std::size_t>(dim_v_) : 0;
  const double *o = s.running_o.data() + last * dim, *e = s.running_o_error.data() + last * dim;
  return {s.running_m[last],
          s.running_m_error[last],
          s.running_l[last],
          s.running_l_error[last],
          {o, o + dim},
          {e, e + dim},
          s.running_known[last] != 0,
          s.running_o_known[last] != 0};
}

}  // namespace attn_diag::reference

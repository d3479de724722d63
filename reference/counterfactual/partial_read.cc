// Where the merge finds a partial.
#include <algorithm>
#include <array>

#include "reference/counterfactual/evaluator.h"

namespace attn_diag::reference {
namespace {

// An axis of the memory between the two kernels.
struct PartialAxis {
  std::int32_t* index;
  std::int32_t extent;
};

// Where a partial is, and its axes in an order, the slowest first.
class PlaceInMemory {
 public:
  PlaceInMemory(const Problem& p, const Geometry& g, const RowIndex& row, std::int32_t split)
      : row_(row), split_(split), p_(p), splits_(g.num_splits) {}

  // With the extents of another shape, if need be.
  std::int64_t offset(PartialOrder order, const CombineChange& read) {
    std::int64_t at = 0;
    for (const PartialAxis& axis : axes(order)) {
      const std::int32_t other = axis.index == &split_       ? read.read_splits
                                 : axis.index == &row_.query ? read.read_queries
                                 : axis.index == &row_.head  ? read.read_heads
                                                             : 0;
      at = at * (other > 0 ? other : axis.extent) + *axis.index;
    }
    return at + read.read_shift;
  }
  std::int64_t size() const {
    return static_cast<std::int64_t>(p_.batch) * p_.heads * p_.seqlen_q * splits_;
  }
  void move_to(PartialOrder order, std::int64_t at) {
    const std::array<PartialAxis, 4> all = axes(order);
    for (auto axis = all.rbegin(); axis != all.rend(); ++axis) {
      *axis->index = static_cast<std::int32_t>(at % axis->extent);
      at /= axis->extent;
    }
  }
  const RowIndex& row() const { return row_; }
  std::int32_t split() const { return split_; }

 private:
  std::array<PartialAxis, 4> axes(PartialOrder order) {
    const PartialAxis b{&row_.batch, p_.batch}, h{&row_.head, p_.heads};
    const PartialAxis q{&row_.query, p_.seqlen_q}, n{&split_, splits_};
    switch (order) {
      case PartialOrder::kBhnq:
        return {b, h, n, q};
      case PartialOrder::kBnhq:
        return {b, n, h, q};
      case PartialOrder::kNbhq:
        return {n, b, h, q};
      case PartialOrder::kHbqn:
        return {h, b, q, n};
      case PartialOrder::kHbnq:
        return {h, b, n, q};
      case PartialOrder::kBqhn:
        return {b, q, h, n};
      case PartialOrder::kQbhn:
        return {q, b, h, n};
      case PartialOrder::kNbqh:
        return {n, b, q, h};
      case PartialOrder::kNhbq:
        return {n, h, b, q};
      case PartialOrder::kBqnh:
        return {b, q, n, h};
      case PartialOrder::kBhqn:
        break;
    }
    return {b, h, q, n};
  }

  RowIndex row_;
  std::int32_t split_;
  const Problem& p_;
  std::int32_t splits_;
};

}  // namespace

std::pair<RowIndex, std::int32_t> Evaluator::partial_read(const RowIndex& row,
                                                          std::int32_t split) const {
  const CombineChange& change = d_.combine;
  const std::int32_t group = p_.heads / p_.kv_heads;
  RowIndex from = row;
  std::int32_t read = split;
  switch (change.map) {
    case PartialMap::kRight:
      break;
    case PartialMap::kFirstSplit:
      read = 0;
      break;
    case PartialMap::kNextSplit:
      read = (split + 1) % g_.num_splits;
      break;
    case PartialMap::kReversedSplits:
      read = g_.num_splits - 1 - split;
      break;
    case PartialMap::kFirstHead:
      from.head = 0;
      break;
    case PartialMap::kFirstBatch:
      from.batch = 0;
      break;
    case PartialMap::kFirstRow:
      from.query = row.query / g_.tile.block_m * g_.tile.block_m;
      break;
    case PartialMap::kFirstQuery:
      from.query = 0;
      break;
    case PartialMap::kNextHead:
      from.head = (row.head + 1) % p_.heads;
      break;
    case PartialMap::kNextBatch:
      from.batch = (row.batch + 1) % p_.batch;
      break;
    case PartialMap::kNextQuery:
      from.query = (row.query + 1) % p_.seqlen_q;
      break;
    case PartialMap::kPreviousHead:
      from.head = (row.head + p_.heads - 1) % p_.heads;
      break;
    case PartialMap::kPreviousBatch:
      from.batch = (row.batch + p_.batch - 1) % p_.batch;
      break;
    case PartialMap::kPreviousQuery:
      from.query = (row.query + p_.seqlen_q - 1) % p_.seqlen_q;
      break;
    case PartialMap::kReversedHeads:
      from.head = p_.heads - 1 - row.head;
      break;
    case PartialMap::kReversedBatches:
      from.batch = p_.batch - 1 - row.batch;
      break;
    case PartialMap::kReversedQueries:
      from.query = p_.seqlen_q - 1 - row.query;
      break;
    case PartialMap::kLastHead:
      from.head = p_.heads - 1;
      break;
    case PartialMap::kLastBatch:
      from.batch = p_.batch - 1;
      break;
    case PartialMap::kLastQuery:
      from.query = p_.seqlen_q - 1;
      break;
    case PartialMap::kKvHead:
      from.head = row.head / group;
      break;
    case PartialMap::kHeadModulo:
      from.head = row.head % p_.kv_heads;
      break;
    case PartialMap::kHeadOfGroup:
      from.head = row.head / group * group;
      break;
    case PartialMap::kHeadPairs:
      from.head = std::min(row.head ^ 1, p_.heads - 1);
      break;
    case PartialMap::kQueryPairs:
      from.query = std::min(row.query ^ 1, p_.seqlen_q - 1);
      break;
    case PartialMap::kQueryOfFragment:
      from.query = std::min(row.query ^ 8, p_.seqlen_q - 1);
      break;
    case PartialMap::kSplits:
      read = change.split_map[static_cast<std::size_t>(split)];
      break;
  }
  const bool other_shape = change.read_splits > 0 || change.read_queries > 0 ||
                           change.read_heads > 0 || change.read_shift != 0;
  if (change.read == change.written && !other_shape) return {from, read};
  PlaceInMemory place(p_, g_, from, read);
  const std::int64_t at = place.offset(change.read, change);
  // Past the ends nobody knows what is there.
  if (at < 0 || at >= place.size()) return {row, -1};
  place.move_to(change.written, at);
  return {place.row(), place.split()};
}

}  // namespace attn_diag::reference

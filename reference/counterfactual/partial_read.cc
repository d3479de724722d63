// Where the merge finds a partial.
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
class Place {
 public:
  Place(const Problem& p, const Geometry& g, const Row& row, std::int32_t split)
      : row_(row), split_(split), p_(p), splits_(g.num_splits) {}

  std::int64_t offset(PartialOrder order) {
    std::int64_t at = 0;
    for (const PartialAxis& axis : axes(order)) at = at * axis.extent + *axis.index;
    return at;
  }
  void move_to(PartialOrder order, std::int64_t at) {
    const std::array<PartialAxis, 4> all = axes(order);
    for (auto axis = all.rbegin(); axis != all.rend(); ++axis) {
      *axis->index = static_cast<std::int32_t>(at % axis->extent);
      at /= axis->extent;
    }
  }
  const Row& row() const { return row_; }
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
      case PartialOrder::kBhqn:
        break;
    }
    return {b, h, q, n};
  }

  Row row_;
  std::int32_t split_;
  const Problem& p_;
  std::int32_t splits_;
};

}  // namespace

std::pair<Row, std::int32_t> Evaluator::partial_read(const Row& row, std::int32_t split) const {
  const CombineChange& change = d_.combine;
  Row from = row;
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
  }
  if (change.read == change.written) return {from, read};
  Place place(p_, g_, from, read);
  place.move_to(change.written, place.offset(change.read));
  return {place.row(), place.split()};
}

}  // namespace attn_diag::reference

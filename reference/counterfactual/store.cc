#include "reference/counterfactual/store.h"

#include "reference/counterfactual/fetch.h"
#include "reference/counterfactual/fragment.h"
#include "reference/counterfactual/index_map.h"

namespace attn_diag::reference {
namespace {

// More rows than this are forgotten: they were of heads long done.
constexpr std::size_t kMostKept = 4096;

std::int32_t head_written(const Problem& p, HeadMap map, std::int32_t head) {
  // Without a query head's own, there is no other kv head.
  const bool divides = map == HeadMap::kDivideByKvHeads || map == HeadMap::kGroupTooSmall;
  return head_read(p, divides ? HeadMap::kOfGroup : map, head, true);
}

}  // namespace

std::optional<StoredOutput::Source> StoredOutput::source_of(const RowIndex& row,
                                                            std::int32_t column) const {
  const Problem& p = c_.problem;
  const std::int32_t block_m = c_.geometry.tile.block_m;
  Source from{row, column};
  if (change_.other_layout) {
    const Strides right = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
    std::int64_t at = row.batch * right.batch + row.head * right.head + row.query * right.seq;
    at = at / p.head_dim_v % (std::int64_t{p.heads} * p.seqlen_q);
    // Memory order of the other layout: the axis that varies faster comes last.
    const bool heads_last = p.layout == Layout::kBHSD;
    const std::int32_t fast = heads_last ? p.heads : p.seqlen_q;
    const auto slow_index = static_cast<std::int32_t>(at / fast);
    const auto fast_index = static_cast<std::int32_t>(at % fast);
    from.row.head = heads_last ? fast_index : slow_index;
    from.row.query = heads_last ? slow_index : fast_index;
  }
  if (change_.head != HeadMap::kRight) {
    // Several heads may be written here: the last one stays.
    std::int32_t head = p.heads - 1;
    while (head >= 0 && head_written(p, change_.head, head) != row.head) --head;
    if (head < 0) return std::nullopt;
    from.row.head = head;
  }
  if (change_.batch_in_heads) {
    // Block b H + h writes to batch % B and head / B of its number.
    const std::int32_t block = row.head * p.batch + row.batch;
    from.row.batch = block / p.heads;
    from.row.head = block % p.heads;
  }
  if (change_.batch_zero) {
    if (row.batch != 0) return std::nullopt;
    from.row.batch = p.batch - 1;
  }
  if (change_.fragment != FragmentMap::kRight) {
    const std::int32_t in_tile = from.row.query % block_m, in_fragment = in_tile % kFragmentSize;
    const FragmentPlace place =
        fragment_source(change_.fragment, in_fragment, column % kFragmentSize);
    const std::int32_t to_row = in_tile - in_fragment + place.row;
    from.column = column / kFragmentSize * kFragmentSize + place.column;
    from.row.query += to_row - in_tile;
    if (to_row >= block_m || from.row.query >= p.seqlen_q || from.column >= p.head_dim_v)
      return std::nullopt;
  }
  if (change_.row_map.rule != IndexRule::kRight) {
    const std::int32_t in_tile = from.row.query % block_m;
    from.row.query += mapped(change_.row_map, in_tile, block_m) - in_tile;
    if (from.row.query >= p.seqlen_q) return std::nullopt;
  }
  from.column = mapped(change_.column_map, from.column, p.head_dim_v);
  if (column < change_.first_column) return std::nullopt;
  from.row.query -= change_.row_shift;
  if (from.row.query < 0 || from.row.query >= p.seqlen_q) return std::nullopt;
  if (change_.columns > 0 && column >= change_.columns) return std::nullopt;
  if (!owns(c_, change_, row.query)) {
    const std::optional<std::int32_t> other = left_over(c_, change_, row.query);
    if (!other) return std::nullopt;
    from.row.query = *other;
  }
  return from;
}

const StoredOutput::Stored& StoredOutput::stored(const RowIndex& row) {
  const auto key = std::make_tuple(row.batch, row.head, row.query);
  const auto found = rows_.find(key);
  if (found != rows_.end()) return found->second;
  if (rows_.size() >= kMostKept) rows_.clear();
  evaluator_.evaluate(row, state_);
  return rows_[key] = {state_.o, state_.o_error, state_.o_known};
}

std::optional<RowIndex> lse_source(const Problem& p, LsePlace place, const RowIndex& row) {
  const std::int64_t of_batch = std::int64_t{p.heads} * p.seqlen_q;
  std::int64_t flat = row.batch * of_batch + std::int64_t{row.head} * p.seqlen_q + row.query;
  if (place == LsePlace::kOtherOrder) {
    const std::int64_t within = flat % of_batch;
    return RowIndex{row.batch, static_cast<std::int32_t>(within % p.heads),
                    static_cast<std::int32_t>(within / p.heads)};
  }
  flat += place == LsePlace::kNextRow ? 1 : place == LsePlace::kRowBefore ? -1 : 0;
  if (flat < 0 || flat >= p.batch * of_batch) return std::nullopt;
  return RowIndex{static_cast<std::int32_t>(flat / of_batch),
                  static_cast<std::int32_t>(flat / p.seqlen_q % p.heads),
                  static_cast<std::int32_t>(flat % p.seqlen_q)};
}

void StoredOutput::cells(const RowIndex& row, double* value, double* bound, std::uint8_t* known,
                         std::uint8_t* unwritten) {
  for (std::int32_t d = 0; d < c_.problem.head_dim_v; ++d) {
    const std::optional<Source> from = source_of(row, d);
    value[d] = bound[d] = 0;
    known[d] = change_.unwritten == Unwritten::kZero ? 1 : 0;
    unwritten[d] = from || known[d] != 0 ? 0 : 1;
    if (!from) continue;
    const Stored& source = stored(from->row);
    value[d] = source.o[static_cast<std::size_t>(from->column)];
    bound[d] = source.error[static_cast<std::size_t>(from->column)];
    known[d] = source.known ? 1 : 0;
  }
}

}  // namespace attn_diag::reference

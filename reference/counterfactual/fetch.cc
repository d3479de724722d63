#include "reference/counterfactual/fetch.h"

#include <algorithm>

#include "reference/counterfactual/narrow.h"
#include "reference/mask.h"

namespace attn_diag::reference {
namespace {

// An element of an operand in memory; kZero: the kernel's tile holds 0 there; kOutside: nobody knows.
constexpr std::int64_t kZero = -1, kOutside = -2;

struct Place {
  std::int32_t row = 0, column = 0;  // within the tile; column < 0: between rows
};

Place place_in_tile(const TileRead& read, std::int32_t tile_rows, std::int32_t columns,
                    std::int32_t row, std::int32_t column) {
  if (read.transposed_blocks > 0) {
    const std::int32_t size = read.transposed_blocks;
    return {row / size * size + column % size, column / size * size + row % size};
  }
  if (read.row_xor != 0 || read.column_xor != 0)
    return {row ^ read.row_xor, column ^ read.column_xor};
  if (read == TileRead{}) return {row, column};
  const auto stride = [&](std::int32_t given, bool transposed) {
    return given > 0 ? given : transposed ? tile_rows : columns;
  };
  const std::int32_t stored = stride(read.stored_stride, read.stored_transposed);
  const std::int32_t read_by = stride(read.read_stride, read.read_transposed);
  std::int32_t major = read.read_transposed ? column : row;
  const std::int32_t minor = read.read_transposed ? row : column;
  std::int32_t flat = 0;
  if (read.stride_within_fragments) {
    constexpr std::int32_t kFragment = 16;
    flat = major / kFragment * kFragment * stored;
    major %= kFragment;
  }
  flat += major * read_by + minor;
  Place place{flat / stored, flat % stored};
  if (read.stored_transposed) std::swap(place.row, place.column);
  if (place.column >= columns) place.column = -1;
  return place;
}

Strides strides_of(const Case::Data& c, const Operand& x, StrideSet set, bool is_query) {
  const Problem& p = c.problem;
  const std::int32_t other_seqlen = is_query ? p.seqlen_k : p.seqlen_q;
  const std::int32_t other_heads = is_query ? p.kv_heads : p.heads;
  Strides strides = x.strides;
  switch (set) {
    case StrideSet::kRight:
      break;
    case StrideSet::kOtherLayout:
      return dense_strides(p.layout == Layout::kBHSD ? Layout::kBSHD : Layout::kBHSD, x.heads,
                           x.seqlen, x.dim);
    case StrideSet::kHeadOfOtherSeqlen:
      strides.head = dense_strides(p.layout, x.heads, other_seqlen, x.dim).head;
      break;
    case StrideSet::kBatchOfOtherHeads:
      strides.batch = dense_strides(p.layout, other_heads, x.seqlen, x.dim).batch;
      break;
  }
  return strides;
}

std::int32_t head_of(const Problem& p, HeadMap map, const FetchRequest& request) {
  const std::int32_t head = request.query_head, group = p.heads / p.kv_heads;
  const std::int32_t right = request.is_query ? head : kv_head_of(p, head);
  switch (map) {
    case HeadMap::kRight:
      break;
    case HeadMap::kZero:
      return 0;
    case HeadMap::kNext:
      return (right + 1) % (request.is_query ? p.heads : p.kv_heads);
    case HeadMap::kModulo:
      return head % p.kv_heads;
    case HeadMap::kDivideByKvHeads:
      return head / p.kv_heads;
    case HeadMap::kQueryHead:
      return head;
    case HeadMap::kGroupTooSmall:
      return head / std::max(group - 1, 1);
  }
  return right;
}

}  // namespace

void gather(const Case::Data& c, const Operand& x, const FetchChange& change,
            const FetchRequest& request, std::span<const std::int32_t> positions, Gathered& out) {
  const Strides strides = strides_of(c, x, change.strides, request.is_query);
  const std::int64_t base = (change.batch_zero ? 0 : request.batch) * strides.batch +
                            head_of(c.problem, change.head, request) * strides.head;
  const auto size = static_cast<std::int64_t>(x.values.size());
  const std::int32_t rows = request.tile_rows, columns = request.columns;
  const auto element = [&](std::int32_t position, std::int32_t column) -> std::int64_t {
    std::int32_t tile = position / rows;
    const Place place = place_in_tile(change.tile, rows, columns, position % rows, column);
    if (place.column < 0) return kZero;
    if (change.tiles_late != 0) {
      const std::int32_t held = tile - change.tiles_late;
      if (held >= 0 && held * rows < x.seqlen)
        tile = held;
      else if (change.outside == Before::kZero)
        return kZero;
    }
    std::int32_t source = tile * rows + place.row;
    if (source >= x.seqlen) {
      if (!request.stale_padding) return kZero;
      source -= rows;
      if (source < 0) return kOutside;
    }
    const std::int64_t at = base + source * strides.seq + place.column;
    return at >= 0 && at < size ? at : kOutside;
  };
  const auto width = static_cast<std::size_t>(columns);
  out.values.resize(positions.size() * width);
  out.known.assign(positions.size(), 1);
  out.all_known = true;
  for (std::size_t s = 0; s < positions.size(); ++s)
    for (std::int32_t d = 0; d < columns; ++d) {
      const std::int64_t at = element(positions[s], d);
      out.values[s * width + static_cast<std::size_t>(d)] =
          at >= 0 ? round_to(change.type, x.values[static_cast<std::size_t>(at)]) : 0.0;
      if (at != kOutside) continue;
      out.known[s] = 0;
      out.all_known = false;
    }
}

}  // namespace attn_diag::reference

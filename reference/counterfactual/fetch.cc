#include "reference/counterfactual/fetch.h"

#include <algorithm>

#include "reference/counterfactual/fragment.h"
#include "reference/counterfactual/index_map.h"
#include "reference/counterfactual/narrow.h"
#include "reference/counterfactual/weighted_rows.h"
#include "reference/mask.h"

namespace attn_diag::reference {
namespace {

// An element of an operand in memory; kZero: the kernel's tile holds 0 there; kOutside: nobody knows.
constexpr std::int64_t kZero = -1, kOutside = -2;

struct PlaceInTile {
  std::int32_t row = 0, column = 0;  // within the tile; column < 0: between rows
};

PlaceInTile place_in_tile(const TileRead& read, std::int32_t tile_rows, std::int32_t columns,
                          std::int32_t row, std::int32_t column) {
  if (read.transposed_blocks > 0) {
    const std::int32_t size = read.transposed_blocks;
    return {row / size * size + column % size, column / size * size + row % size};
  }
  if (read == TileRead{}) return {row, column};
  if (read.fragment != FragmentMap::kRight) {
    const std::int32_t in_row = row % kFragmentSize, in_column = column % kFragmentSize;
    const FragmentPlace from = fragment_source(read.fragment, in_row, in_column);
    return {row - in_row + from.row, column - in_column + from.column};
  }
  if (read.rows.rule != IndexRule::kRight || read.columns.rule != IndexRule::kRight)
    return {mapped(read.rows, row, tile_rows), mapped(read.columns, column, columns)};
  if (read.swizzled_by > 0)
    return {row, column ^ row / read.swizzled_every % read.swizzled_rows * read.swizzled_by};
  const auto stride = [&](std::int32_t given, bool transposed) {
    return given > 0 ? given : transposed ? tile_rows : columns;
  };
  const std::int32_t stored = stride(read.stored_stride, read.stored_transposed);
  const std::int32_t read_by = stride(read.read_stride, read.read_transposed);
  std::int32_t major = read.read_transposed ? column : row;
  const std::int32_t minor = read.read_transposed ? row : column;
  std::int32_t flat = 0;
  if (read.stride_within_fragments) {
    flat = major / kFragmentSize * kFragmentSize * stored;
    major %= kFragmentSize;
  }
  flat += major * read_by + minor;
  PlaceInTile place{flat / stored, flat % stored};
  if (read.stored_transposed) std::swap(place.row, place.column);
  if (place.column >= columns) place.column = -1;
  return place;
}

Strides strides_of(const PredictionInputs::Data& c, const Operand& x, StrideSet set,
                   bool is_query) {
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
    case StrideSet::kHeadOfWholeTiles: {
      const std::int32_t rows = is_query ? c.geometry.tile.block_m : c.geometry.tile.block_n;
      strides.head = dense_strides(p.layout, x.heads, ceil_div(x.seqlen, rows) * rows, x.dim).head;
      break;
    }
    case StrideSet::kRowOfOtherDim:
      return dense_strides(p.layout, x.heads, x.seqlen,
                           x.dim == p.head_dim ? p.head_dim_v : p.head_dim);
  }
  return strides;
}

// The tiles that the buffer has held, and will, while the loop is at `tile`.
KeyRange loaded_tiles(const FetchRequest& request, bool in_loop, std::int32_t tile,
                      std::int32_t tiles) {
  if (!in_loop) return {0, tiles};
  const std::int32_t first = tile / request.tiles_per_split * request.tiles_per_split;
  return {std::max(first, request.visited.begin),
          std::min({first + request.tiles_per_split, request.visited.end, tiles})};
}

std::int32_t tile_in_place_of(TileOrder order, KeyRange loop, std::int32_t tile) {
  if (tile < loop.begin || tile >= loop.end) return tile;
  const std::int32_t other = loop.begin + ((tile - loop.begin) ^ 1);
  switch (order) {
    case TileOrder::kRight:
      break;
    case TileOrder::kFirst:
      return loop.begin;
    case TileOrder::kLast:
      return loop.end - 1;
    case TileOrder::kPairsSwapped:
      return other < loop.end ? other : tile;
    case TileOrder::kSecondStale:
      return tile == loop.begin + 1 ? loop.begin : tile;
    case TileOrder::kLastStale:
      return tile == loop.end - 1 ? std::max(tile - 1, loop.begin) : tile;
  }
  return tile;
}

struct Page {
  std::int32_t batch = 0, number = 0;
};

// `count` pages of each sequence lie one after another.
Page page_read(PageMap map, Page right, std::int32_t count, std::int32_t batches) {
  const auto [batch, page] = right;
  const auto of_all = [&](std::int32_t at) { return Page{at / count, at % count}; };
  switch (map) {
    case PageMap::kRight:
      break;
    case PageMap::kFirst:
      return {batch, 0};
    case PageMap::kNext:
      return {batch, (page + 1) % count};
    case PageMap::kPrevious:
      return {batch, (page + count - 1) % count};
    case PageMap::kNextOfAll:
      return of_all(batch * count + page + 1);
    case PageMap::kAtMostLast:
      return {batch, std::min(page + 1, count - 1)};
    case PageMap::kAtLeastFirst:
      return {batch, std::max(page - 1, 0)};
    case PageMap::kReversed:
      return {batch, count - 1 - page};
    case PageMap::kPairsSwapped:
      return {batch, (page ^ 1) < count ? page ^ 1 : page};
    case PageMap::kNextSequence:
      return {(batch + 1) % batches, page};
    case PageMap::kShortTable:
      return of_all(batch * (count - 1) + page);
    case PageMap::kLongTable:
      return of_all(batch * (count + 1) + page);
  }
  return right;
}

}  // namespace

std::int32_t head_read(const Problem& p, HeadMap map, std::int32_t head, bool is_query) {
  const std::int32_t group = p.heads / p.kv_heads;
  const std::int32_t right = is_query ? head : kv_head_of(p, head);
  const std::int32_t heads = is_query ? p.heads : p.kv_heads;
  switch (map) {
    case HeadMap::kRight:
      break;
    case HeadMap::kZero:
      return 0;
    case HeadMap::kNext:
      return (right + 1) % heads;
    case HeadMap::kModulo:
      return head % p.kv_heads;
    case HeadMap::kDivideByKvHeads:
      return head / p.kv_heads;
    case HeadMap::kQueryHead:
      return head;
    case HeadMap::kGroupTooSmall:
      return head / std::max(group - 1, 1);
    case HeadMap::kPrevious:
      return (right + heads - 1) % heads;
    case HeadMap::kReversed:
      return heads - 1 - right;
    case HeadMap::kLast:
      return heads - 1;
    case HeadMap::kNeighbour:
      return (right ^ 1) < heads ? right ^ 1 : right;
    case HeadMap::kGroupTooLarge:
      return head / (group + 1);
    case HeadMap::kRoundedUp:
      return std::min(ceil_div(head, group), p.kv_heads - 1);
    case HeadMap::kInGroup:
      return head % group;
    case HeadMap::kFirstOfGroup:
      return head - head % group;
    case HeadMap::kLastOfGroup:
      return head - head % group + group - 1;
    case HeadMap::kOfGroup:
      return head / group;
    case HeadMap::kDealt:
      return head % p.kv_heads * group + head / p.kv_heads;
  }
  return right;
}

void gather(const PredictionInputs::Data& c, const Operand& x, const FetchChange& change,
            FetchRequest request, std::span<const std::int32_t> positions, Gathered& out) {
  if (change.batch_in_heads) {
    const std::int32_t block = request.batch * c.problem.heads + request.query_head;
    request.batch = block % c.problem.batch;
    request.query_head = block / c.problem.batch;
  }
  const Strides strides = strides_of(c, x, change.strides, request.is_query);
  const std::int64_t base =
      (change.batch_zero ? 0 : request.batch) * strides.batch +
      head_read(c.problem, change.head, request.query_head, request.is_query) * strides.head;
  const auto size = static_cast<std::int64_t>(x.values.size());
  const std::int32_t rows = request.tile_rows, columns = request.columns;
  const std::int32_t step = change.tile_step > 0 ? change.tile_step : rows;
  const std::int32_t tiles = ceil_div(x.seqlen, rows);
  const auto element = [&](std::int32_t position, std::int32_t column) -> std::int64_t {
    std::int32_t tile = position / rows;
    const PlaceInTile place = place_in_tile(change.tile, rows, columns, position % rows, column);
    if (place.column < 0) return kZero;
    const std::int32_t loaded_of = change.loaded_of > 0 ? change.loaded_of : rows;
    const bool unloaded = change.loaded_rows > 0 && place.row % loaded_of >= change.loaded_rows;
    const std::int32_t late = unloaded ? change.unloaded_late : change.tiles_late;
    if (unloaded && late == 0) return kZero;
    if (late != 0 || change.order != TileOrder::kRight) {
      const KeyRange loop = loaded_tiles(request, change.late_in_loop, tile, tiles);
      const std::int32_t held = tile_in_place_of(change.order, loop, tile) - late;
      if (held >= loop.begin && held < loop.end)
        tile = held;
      else if (unloaded || change.outside == Before::kZero)
        return kZero;
    }
    std::int32_t source = tile * step + place.row;
    if (change.beyond != Beyond::kMemory && source < x.seqlen) {
      source -= change.row_shift;
      if (change.beyond == Beyond::kZero && (source < 0 || source >= x.seqlen)) return kZero;
      source = std::clamp(source, 0, x.seqlen - 1) + change.row_shift;
    }
    if (source >= x.seqlen) {
      switch (request.padding) {
        case Padding::kNotCounted:
        case Padding::kZeros:
          return kZero;
        case Padding::kStale:
          source -= rows;
          break;
        case Padding::kLast:
          source = x.seqlen - 1;
          break;
        case Padding::kFirst:
          source %= x.seqlen;
          break;
        case Padding::kNext:
          break;
      }
      if (source < 0) return kOutside;
    }
    std::int64_t of_batch = 0;
    if (change.pages != PageMap::kRight) {
      const Page page = page_read(change.pages, {request.batch, source / change.page_rows},
                                  ceil_div(x.seqlen, change.page_rows), c.problem.batch);
      source = page.number * change.page_rows + source % change.page_rows;
      if (source >= x.seqlen || page.batch >= c.problem.batch) return kOutside;
      of_batch = (page.batch - request.batch) * strides.batch;
    }
    std::int32_t from = place.column - change.column_shift;
    if (change.beyond == Beyond::kZero && (from < 0 || from >= x.dim)) return kZero;
    if (change.beyond == Beyond::kKept) from = std::clamp(from, 0, x.dim - 1);
    const std::int64_t at = base + of_batch + (source - change.row_shift) * strides.seq + from;
    return at >= 0 && at < size ? at : kOutside;
  };
  const auto width = static_cast<std::size_t>(columns);
  out.values.resize(positions.size() * width);
  out.known.assign(positions.size(), 1);
  out.all_known = true;
  // Rows that are read as they lie in memory need one address each.
  const bool whole_rows = change.tile == TileRead{} && change.column_shift == 0 && columns <= x.dim;
  const auto value = [&](std::int64_t at) {
    if (at < 0) return 0.0;
    const double right = x.values[static_cast<std::size_t>(at)];
    return change.type == Narrow::kNone ? right : round_to(change.type, right);
  };
  for (std::size_t s = 0; s < positions.size(); ++s) {
    double* const row = out.values.data() + s * width;
    const std::int64_t first = whole_rows ? element(positions[s], 0) : kOutside;
    const bool contiguous = first >= 0 && first + columns <= size;
    bool known = true;
    for (std::int32_t d = 0; d < columns; ++d) {
      const std::int64_t at = contiguous                ? first + d
                              : whole_rows && first < 0 ? first
                                                        : element(positions[s], d);
      row[d] = value(at);
      known = known && at != kOutside;
    }
    for (std::int32_t d = change.first_scaled;
         d < std::min(columns, change.first_scaled + change.scaled_columns); ++d)
      row[d] *= change.column_scale;
    if (known) continue;
    out.known[s] = 0;
    out.all_known = false;
  }
}

namespace {

class Kept {
 public:
  std::shared_ptr<const Gathered> get(const PredictionInputs::Data& c, const Operand& operand,
                                      const FetchChange& change, const FetchRequest& request,
                                      std::span<const std::int32_t> positions) {
    const auto same = [&](const Entry& e) {
      return e.serial == c.serial && e.request == request && e.change == change;
    };
    // Callers ask for one again and again, or for one after another in turn.
    for (std::size_t i = 0; i < x_entries.size(); ++i) {
      const std::size_t at = (x_last + i) % x_entries.size();
      if (!same(x_entries[at])) continue;
      x_last = at;
      return x_entries[at].gathered;
    }
    const auto gathered = std::make_shared<Gathered>();
    gather(c, operand, change, request, positions, *gathered);
    gathered->norms.resize(positions.size());
    row_norms(gathered->values.data(), request.columns, static_cast<std::int32_t>(positions.size()),
              request.columns, gathered->norms.data());
    if (x_size + gathered->values.size() > kMostValues) {
      x_entries.clear();
      x_size = 0;
    }
    x_size += gathered->values.size();
    x_last = x_entries.size();
    x_entries.push_back({c.serial, change, request, gathered});
    return gathered;
  }

 private:
  static constexpr std::size_t kMostValues = std::size_t{1} << 21;  // 16 MiB
  struct Entry {
    std::uint64_t serial;
    FetchChange change;
    FetchRequest request;
    std::shared_ptr<const Gathered> gathered;
  };
  std::vector<Entry> x_entries;
  std::size_t x_size = 0, x_last = 0;
};

}  // namespace

std::shared_ptr<const Gathered> gather_all(const PredictionInputs::Data& c, const Operand& operand,
                                           const FetchChange& change, const FetchRequest& request,
                                           std::span<const std::int32_t> positions) {
  thread_local Kept k, v;
  return (&operand == c.k.get() ? k : v).get(c, operand, change, request, positions);
}

}  // namespace attn_diag::reference

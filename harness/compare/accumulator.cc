#include "harness/compare/accumulator.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "harness/capture/element.h"
#include "harness/compare/cells.h"

namespace attn_diag {
namespace {

// 16-bit cells are widened a piece at a time, in cache.
constexpr std::int64_t kPiece = 2048;

const float* widen(const void* data, DType dtype, std::int64_t n, float* buffer) {
  const auto* bits = static_cast<const std::uint16_t*>(data);
  if (dtype == DType::kFp16)
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = widen_fp16(bits[i]);
  else
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = widen_bf16(bits[i]);
  return buffer;
}

// Calls f with a pointer to float or double cells.
template <class F>
void with_cells(TypedCells cells, std::int64_t n, float* buffer, const F& f) {
  switch (cells.dtype) {
    case DType::kFp16:
    case DType::kBf16:
      return f(widen(cells.data, cells.dtype, n, buffer));
    case DType::kFp32:
      return f(static_cast<const float*>(cells.data));
    case DType::kFp64:
      return f(static_cast<const double*>(cells.data));
  }
}

TypedCells advance(TypedCells cells, std::int64_t n) {
  const auto bytes = n * static_cast<std::int64_t>(size_of(cells.dtype));
  return {static_cast<const std::byte*>(cells.data) + bytes, cells.dtype};
}
ArrayLimit advance(const ArrayLimit& limit, std::int64_t n) {
  return {limit.limit + n, limit.factor};
}
AbsoluteRelativeLimit advance(const AbsoluteRelativeLimit& limit, std::int64_t) { return limit; }

double limit_of(const ArrayLimit& limit, std::int64_t i, double) {
  return limit.limit[i] * limit.factor;
}
double limit_of(const AbsoluteRelativeLimit& limit, std::int64_t, double expected) {
  return limit.atol + limit.rtol * std::fabs(expected);
}

}  // namespace

CellGrid::CellGrid(Tensor tensor, std::vector<std::int64_t> cells, std::vector<std::int64_t> first,
                   const TileShape& tile)
    : id(tensor), shape(std::move(cells)), origin(std::move(first)), block_m(tile.block_m) {
  rows = shape[0] * shape[1] * shape[2];
  for (std::size_t i = 3; i < shape.size(); ++i) row_cells *= shape[i];
  const Axis fourth = info(id).rank > 3 ? info(id).axes[3] : Axis::kDim;
  run_cells = fourth == Axis::kKey      ? tile.block_n
              : fourth == Axis::kKvTile ? row_cells / std::max<std::int64_t>(shape[3], 1)
                                        : row_cells;
  const std::int64_t first_tile = origin[2] / block_m;
  const std::int64_t end_tile = (origin[2] + shape[2] + block_m - 1) / block_m;
  const std::int64_t kv_tiles = run_cells == 0 ? 0 : (row_cells + run_cells - 1) / run_cells;
  picture_shape = {shape[0], shape[1], end_tile - first_tile, kv_tiles};
}

std::array<std::int64_t, 5> CellGrid::index_of(std::int64_t at) const {
  std::array<std::int64_t, 5> index{};
  for (std::size_t i = shape.size(); i-- > 0; at /= shape[i]) index[i] = origin[i] + at % shape[i];
  return index;
}

SharedPicture::SharedPicture(const CellGrid& grid) {
  std::int64_t n = 1;
  for (const std::int64_t extent : grid.picture_shape) n *= extent;
  tiles.resize(static_cast<std::size_t>(n));
}

CellAccumulator::CellAccumulator(const CellGrid& grid, SharedPicture& picture, DType storage)
    : x_grid(grid),
      x_picture(picture),
      x_ulp(ulp_scale(storage)),
      x_tiles(static_cast<std::size_t>(grid.picture_shape[3])) {}

void CellAccumulator::add(std::int64_t at, std::int64_t n, TypedCells actual, TypedCells expected,
                          const AbsoluteRelativeLimit& limit) {
  add_pieces(at, n, actual, expected, limit);
}
void CellAccumulator::add(std::int64_t at, std::int64_t n, TypedCells actual, TypedCells expected,
                          const ArrayLimit& limit) {
  add_pieces(at, n, actual, expected, limit);
}

template <class Limit>
void CellAccumulator::add_pieces(std::int64_t at, std::int64_t n, TypedCells actual,
                                 TypedCells expected, const Limit& limit) {
  float actual_buffer[kPiece], expected_buffer[kPiece];
  Limit limit_here = limit;
  while (n > 0) {
    const std::int64_t row = at / x_grid.row_cells;
    const std::int64_t left_in_row = (row + 1) * x_grid.row_cells - at;
    const std::int64_t piece = std::min({n, left_in_row, kPiece});
    start_row(row);
    with_cells(actual, piece, actual_buffer, [&](const auto* a) {
      with_cells(expected, piece, expected_buffer,
                 [&](const auto* e) { add_row_part(at, piece, a, e, limit_here); });
    });
    at += piece;
    n -= piece;
    actual = advance(actual, piece);
    expected = advance(expected, piece);
    limit_here = advance(limit_here, piece);
  }
}

// Whether the largest value of a run that begins at `at` beats the maximum so far: larger, or equal and before it.
bool CellAccumulator::beaten_by(double value, std::int64_t at, const Maximum& so_far) {
  return so_far.at < 0 || value > so_far.value || (value == so_far.value && at < so_far.at);
}

template <class A, class E, class Limit>
void CellAccumulator::add_row_part(std::int64_t at, std::int64_t n, const A* actual,
                                   const E* expected, const Limit& limit) {
  x_compared += n;
  std::int64_t cell = at % x_grid.row_cells;
  if (x_grid.run_cells == 1) {
    // Every cell is a KV tile of its own: one run for all of them, told apart afterwards.
    const auto padded = static_cast<std::size_t>((n + kLanes - 1) / kLanes * kLanes);
    x_each_ratio.resize(padded);
    x_each_passes.resize(padded);
    const EachCell each{x_each_ratio.data(), x_each_passes.data()};
    add_run(at, n, actual, expected, limit, &each);
    for (std::int64_t i = 0; i < n; ++i) {
      TileError& tile = x_tiles[static_cast<std::size_t>(cell + i)];
      tile.max_err_over_bound = std::max(tile.max_err_over_bound, each.ratio[i]);
      tile.mismatched += each.passes[i] == 0;
      ++tile.compared;
    }
    return;
  }
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t left_in_run = x_grid.run_cells - cell % x_grid.run_cells;
    const std::int64_t run = std::min(left_in_run, n - i);
    const CellFindings f =
        add_run(at + i, run, actual + i, expected + i, advance(limit, i), nullptr);
    TileError& tile = x_tiles[static_cast<std::size_t>(cell / x_grid.run_cells)];
    tile.max_err_over_bound = std::max(tile.max_err_over_bound, f.max_ratio);
    tile.mismatched += f.mismatched;
    tile.compared += run;
    i += run;
    cell += run;
  }
}

template <class A, class E, class Limit>
CellFindings CellAccumulator::add_run(std::int64_t at, std::int64_t n, const A* actual,
                                      const E* expected, const Limit& limit, const EachCell* each) {
  if constexpr (std::is_same_v<A, float> && std::is_same_v<E, float> &&
                std::is_same_v<Limit, AbsoluteRelativeLimit>)
    if (each == nullptr && add_identical_run(at, n, actual, expected, limit)) return {};
  const Floors floors{x_rel.value, x_sums.max_zeros};
  const CellFindings f = each != nullptr
                             ? judge_cells<true>(actual, expected, limit, n, x_ulp, floors, *each)
                             : judge_cells(actual, expected, limit, n, x_ulp, floors);
  x_sums.mismatched += f.mismatched;
  x_sums.nan_actual += f.nan_actual;
  x_sums.nan_both += f.nan_both;
  x_sums.unjudged += f.unjudged;
  x_sums.max_ulp = std::max(x_sums.max_ulp, f.max_ulp);
  x_sums.max_zeros = std::max(x_sums.max_zeros, f.max_zeros);
  x_row.mismatched += f.mismatched;
  x_row.max_ratio = std::max(x_row.max_ratio, f.max_ratio);
  note_places(at, n, actual, expected, limit, f);
  return f;
}

// Most of two nearly equal tensors: nothing to divide. Identical cells change a maximum only while it
// is 0, and of the score of zeros, which grows with the magnitude, they need only the largest.
bool CellAccumulator::add_identical_run(std::int64_t at, std::int64_t n, const float* actual,
                                        const float* expected, const AbsoluteRelativeLimit& limit) {
  if (beaten_by(0, at, x_worst) || beaten_by(0, at, x_abs) || beaten_by(0, at, x_rel)) return false;
  float magnitude = 0;
  if (!identical_cells(actual, expected, n, magnitude)) return false;
  if (magnitude > x_identical_magnitude) {
    x_identical_magnitude = magnitude;
    const double score = magnitude / limit_of(limit, 0, magnitude);
    x_sums.max_zeros =
        std::max(x_sums.max_zeros, score <= cells::kInfinity ? score : cells::kInfinity);
  }
  return true;
}

// Looks for coordinates only in runs that change one: few, once the maxima have settled.
template <class A, class E, class Limit>
void CellAccumulator::note_places(std::int64_t at, std::int64_t n, const A* actual,
                                  const E* expected, const Limit& limit, const CellFindings& f) {
  const bool first = f.mismatched > 0 && (x_first < 0 || at < x_first);
  const bool worst = beaten_by(f.max_ratio, at, x_worst);
  const bool abs = beaten_by(f.max_abs, at, x_abs);
  const bool rel = beaten_by(f.max_rel, at, x_rel);
  if (!first && !worst && !abs && !rel) return;

  const CellPlaces places = locate_cells(actual, expected, limit, n, f);
  const auto describe = [&](std::int64_t i) {
    const double e = static_cast<double>(expected[i]);
    return Mismatch{x_grid.index_of(at + i), static_cast<double>(actual[i]), e,
                    limit_of(limit, i, e)};
  };
  const auto take = [at](Maximum& so_far, double value, std::int64_t i) {
    if (so_far.at < 0 || value > so_far.value || at + i < so_far.at) so_far = {value, at + i};
  };
  if (first) {
    x_first = at + places.mismatch;
    x_first_cell = describe(places.mismatch);
  }
  if (worst) {
    take(x_worst, f.max_ratio, places.ratio);
    if (x_worst.at == at + places.ratio) x_worst_cell = describe(places.ratio);
  }
  if (abs) take(x_abs, f.max_abs, places.abs);
  if (rel) take(x_rel, f.max_rel, places.rel);
}

void CellAccumulator::start_row(std::int64_t row) {
  if (row == x_row.row) return;
  flush_row();
  x_row = {row, 0, 0};
  const std::int64_t queries = x_grid.shape[2];
  const std::int64_t query_tile =
      (x_grid.origin[2] + row % queries) / x_grid.block_m - x_grid.origin[2] / x_grid.block_m;
  const std::int64_t tile_row = row / queries * x_grid.picture_shape[2] + query_tile;
  if (tile_row == x_tile_row) return;
  flush_tiles();
  x_tile_row = tile_row;
}

void CellAccumulator::flush_row() {
  if (x_row.row >= 0 && x_row.mismatched > 0) x_wrong_rows.push_back(x_row);
  x_row = {};
}

void CellAccumulator::flush_tiles() {
  if (x_tile_row < 0) return;
  const std::lock_guard lock(x_picture.mutex);
  TileError* shared = x_picture.tiles.data() + x_tile_row * x_grid.picture_shape[3];
  for (TileError& tile : x_tiles) {
    shared->max_err_over_bound = std::max(shared->max_err_over_bound, tile.max_err_over_bound);
    shared->mismatched += tile.mismatched;
    shared->compared += tile.compared;
    ++shared;
    tile = {};
  }
}

void CellAccumulator::finish() {
  flush_row();
  flush_tiles();
  x_tile_row = -1;
}

TensorComparison merge(const CellGrid& grid, SharedPicture&& picture,
                       std::span<const CellAccumulator* const> parts) {
  using Maximum = CellAccumulator::Maximum;
  TensorComparison c;
  c.tensor = grid.id;
  c.picture = std::move(picture.tiles);
  c.picture_shape = grid.picture_shape;
  Maximum worst, abs, rel;
  std::int64_t first = -1;
  std::vector<CellAccumulator::WrongRow> rows;
  const auto beats = [](const Maximum& a, const Maximum& b) {
    return a.at >= 0 && (b.at < 0 || a.value > b.value || (a.value == b.value && a.at < b.at));
  };
  for (const CellAccumulator* part : parts) {
    c.compared += part->x_compared - part->x_sums.unjudged;
    c.mismatched += part->x_sums.mismatched;
    c.nan_actual += part->x_sums.nan_actual;
    c.nan_both += part->x_sums.nan_both;
    c.max_ulp = std::max(c.max_ulp, part->x_sums.max_ulp);
    c.zeros_err_over_bound = std::max(c.zeros_err_over_bound, part->x_sums.max_zeros);
    if (part->x_first >= 0 && (first < 0 || part->x_first < first)) {
      first = part->x_first;
      c.first = part->x_first_cell;
    }
    if (beats(part->x_worst, worst)) {
      worst = part->x_worst;
      c.worst = part->x_worst_cell;
    }
    if (beats(part->x_abs, abs)) abs = part->x_abs;
    if (beats(part->x_rel, rel)) rel = part->x_rel;
    rows.insert(rows.end(), part->x_wrong_rows.begin(), part->x_wrong_rows.end());
  }
  c.unjudged = grid.size() - c.compared;  // also what nothing was held against
  c.max_err_over_bound = worst.value;
  c.max_abs_err = abs.value;
  c.max_rel_err = rel.value;
  if (abs.at >= 0) c.max_abs_index = grid.index_of(abs.at);
  if (rel.at >= 0) c.max_rel_index = grid.index_of(rel.at);

  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.row < b.row; });
  std::int64_t last = -1;
  for (const CellAccumulator::WrongRow& row : rows) {
    if (row.row != last) {
      const auto index = grid.index_of(row.row * grid.row_cells);
      c.wrong_rows.push_back({static_cast<std::int32_t>(index[0]),
                              static_cast<std::int32_t>(index[1]),
                              static_cast<std::int32_t>(index[2]), 0, 0});
      last = row.row;
    }
    c.wrong_rows.back().mismatched += row.mismatched;
    c.wrong_rows.back().max_err_over_bound =
        std::max(c.wrong_rows.back().max_err_over_bound, row.max_ratio);
  }
  return c;
}

}  // namespace attn_diag

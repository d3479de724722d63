#include "harness/run/coverage.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "attn_diag/reference/reference.h"

namespace attn_diag {
namespace {

// What an unwritten cell of a skipped tile holds.
struct Neutral {
  bool skippable = false;  // the tensor has cells on KV tiles at all
  double value = 0;
  bool carries = false;  // takes the value of the split's tile before, where there is one
};

Neutral neutral_of(Tensor t, Frame frame) {
  constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
  switch (t) {
    case Tensor::kS:
      return {true, kMinusInfinity, false};
    case Tensor::kM:
      return {true, kMinusInfinity, frame == Frame::kRunning};
    case Tensor::kRunningM:
      return {true, kMinusInfinity, true};
    case Tensor::kL:
    case Tensor::kP:
    case Tensor::kPartialO:
      return {true, 0, false};
    case Tensor::kRunningL:
    case Tensor::kRunningO:
      return {true, 0, true};
    case Tensor::kMergedL:
    case Tensor::kMergedO:
    case Tensor::kLse:
    case Tensor::kO:
      break;
  }
  return {};
}

// The reference's answer for each (query tile, KV tile), asked for once.
class SkippableTiles {
 public:
  SkippableTiles(const Problem& problem, const Geometry& geometry)
      : x_problem(problem),
        x_geometry(geometry),
        x_kv_tiles(num_kv_tiles(problem, geometry)),
        x_answers(static_cast<std::size_t>(x_kv_tiles) *
                  static_cast<std::size_t>(num_query_tiles(problem, geometry))) {}

  bool operator()(std::int64_t query_tile, std::int64_t kv_tile) {
    if (!x_geometry.skips_masked_tiles) return false;
    Answer& answer = x_answers[static_cast<std::size_t>(query_tile * x_kv_tiles + kv_tile)];
    if (answer == Answer::kUnknown) {
      const bool masked =
          reference::tile_fully_masked(x_problem, x_geometry, static_cast<std::int32_t>(query_tile),
                                       static_cast<std::int32_t>(kv_tile));
      answer = masked ? Answer::kYes : Answer::kNo;
    }
    return answer == Answer::kYes;
  }

 private:
  enum class Answer : std::uint8_t { kUnknown, kNo, kYes };
  const Problem& x_problem;
  const Geometry& x_geometry;
  std::int64_t x_kv_tiles;
  std::vector<Answer> x_answers;
};

class TensorSettler {
 public:
  TensorSettler(const Capture& capture, SkippableTiles& skippable, Tensor t, TensorData& data,
                Coverage& coverage)
      : x_geometry(capture.geometry),
        x_skippable(skippable),
        x_id(t),
        x_neutral(neutral_of(t, capture.geometry.frame)),
        x_data(data),
        x_coverage(coverage) {
    for (std::size_t i = 3; i < data.shape.size(); ++i) x_row_cells *= data.shape[i];
    const Axis fourth = info(t).axes[3];
    // Cells of one row that belong to one KV tile.
    x_cells_per_tile = fourth == Axis::kKey ? x_geometry.tile.block_n
                       : info(t).rank == 5  ? data.shape[4]
                                            : 1;
  }

  void settle() {
    const std::int64_t rows = x_row_cells == 0 ? 0 : x_data.size() / x_row_cells;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::uint8_t* writes = x_data.writes.data() + row * x_row_cells;
      if (std::all_of(writes, writes + x_row_cells, [](std::uint8_t w) { return w == 1; }))
        continue;
      settle_row(row);
    }
    x_data.writes.clear();
    x_data.writes.shrink_to_fit();
  }

 private:
  // A tile that was skipped as a whole, as half of all are with a causal mask, is filled as a whole.
  void settle_row(std::int64_t row) {
    const std::uint8_t* writes = x_data.writes.data() + row * x_row_cells;
    for (std::int64_t cell = 0; cell < x_row_cells; cell += x_cells_per_tile) {
      const std::int64_t end = std::min(cell + x_cells_per_tile, x_row_cells);
      const bool unwritten =
          std::all_of(writes + cell, writes + end, [](auto w) { return w == 0; });
      if (unwritten && may_be_skipped(row, cell))
        fill(row * x_row_cells + cell, cell, end - cell);
      else
        settle_cells(row, cell, end);
    }
  }

  void settle_cells(std::int64_t row, std::int64_t begin, std::int64_t end) {
    for (std::int64_t cell = begin; cell < end; ++cell) {
      const std::int64_t at = row * x_row_cells + cell;
      const int writes = x_data.writes[static_cast<std::size_t>(at)];
      if (writes == 1) continue;
      if (writes > 1) {
        ++x_coverage.repeatedly;
        if (!x_coverage.first_repeated) x_coverage.first_repeated = fault(at, writes);
      } else if (may_be_skipped(row, cell)) {
        fill(at, cell, 1);
      } else {
        ++x_coverage.never;
        if (!x_coverage.first_never) x_coverage.first_never = fault(at, 0);
      }
    }
  }

  bool may_be_skipped(std::int64_t row, std::int64_t cell) {
    if (!x_neutral.skippable) return false;
    const std::int64_t query = x_data.origin[2] + row % x_data.shape[2];
    return x_skippable(query / x_geometry.tile.block_m, cell / x_cells_per_tile);
  }

  // n cells of one tile, the first at flat index `at`.
  void fill(std::int64_t at, std::int64_t cell, std::int64_t n) {
    const auto size = static_cast<std::int64_t>(size_of(x_data.dtype));
    std::byte* const to = x_data.bytes.data() + at * size;
    const bool first_of_split = cell / x_cells_per_tile % x_geometry.tiles_per_split == 0;
    if (x_neutral.carries && !first_of_split) {
      std::memcpy(to, to - x_cells_per_tile * size, static_cast<std::size_t>(n * size));
      return;
    }
    store_element(to, x_data.dtype, 0, x_neutral.value);
    for (std::int64_t filled = 1; filled < n; filled *= 2)
      std::memcpy(to + filled * size, to,
                  static_cast<std::size_t>(std::min(filled, n - filled) * size));
  }

  CoverageFault fault(std::int64_t at, int writes) const {
    CoverageFault f{x_id, {}, writes};
    for (std::size_t i = x_data.shape.size(); i-- > 0; at /= x_data.shape[i])
      f.index[i] = x_data.origin[i] + at % x_data.shape[i];
    return f;
  }

  const Geometry& x_geometry;
  SkippableTiles& x_skippable;
  Tensor x_id;
  Neutral x_neutral;
  TensorData& x_data;
  Coverage& x_coverage;
  std::int64_t x_row_cells = 1;
  std::int64_t x_cells_per_tile = 1;
};

}  // namespace

void settle_coverage(Capture& capture) {
  SkippableTiles skippable(capture.problem, capture.geometry);
  for (std::size_t i = 0; i < capture.tensors.size(); ++i) {
    std::optional<TensorData>& data = capture.tensors[i];
    if (!data || data->writes.empty()) continue;
    capture.coverage[i] = {};
    TensorSettler(capture, skippable, static_cast<Tensor>(i), *data, capture.coverage[i]).settle();
  }
}

}  // namespace attn_diag

#include "harness/report/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

// Cells along one axis of a row's tensor: those of a rank 5 tensor lie at `outer` of its 4th axis.
struct Range {
  std::int64_t outer = 0, begin = 0, end = 1;
  std::int64_t size() const { return end - begin; }
};

class Cells {
 public:
  Cells(const RowTensor& data, const Range& range) : x_data(data), x_range(range) {}

  std::size_t at(std::int64_t i) const {
    return static_cast<std::size_t>(x_range.outer * x_data.inner1 + i);
  }
  Judgement judgement(std::int64_t i) const {
    return judge_cell(x_data.actual[at(i)], x_data.expected[at(i)], x_data.limit[at(i)]);
  }
  bool wrong(std::int64_t i) const { return !judgement(i).passes; }
  std::int64_t num_wrong() const {
    std::int64_t n = 0;
    for (std::int64_t i = x_range.begin; i < x_range.end; ++i) n += wrong(i);
    return n;
  }
  std::int64_t num_judged() const {
    std::int64_t n = 0;
    for (std::int64_t i = x_range.begin; i < x_range.end; ++i) n += judged(i);
    return n;
  }
  bool judged(std::int64_t i) const { return judgement(i).judged; }
  std::optional<std::int64_t> first_wrong() const {
    for (std::int64_t i = x_range.begin; i < x_range.end; ++i)
      if (wrong(i)) return i;
    return std::nullopt;
  }

 private:
  const RowTensor& x_data;
  const Range& x_range;
};

std::string axis_name(Tensor t, int axis) {
  if (axis >= info(t).rank) return "";
  std::string s(name(info(t).axes[static_cast<std::size_t>(axis)]));
  std::replace(s.begin(), s.end(), '_', ' ');
  return s;
}

std::string table_of(const RowTensor& data, Tensor tensor, const Range& range,
                     std::optional<std::int64_t> pointed, const Style& style) {
  const Cells cells(data, range);
  Table table({"", ">" + axis_name(tensor, info(tensor).rank - 1), ">kernel", ">reference",
               ">error", ">bound", ">err/bound", ""});
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const double actual = data.actual[cells.at(i)], expected = data.expected[cells.at(i)];
    const double limit = data.limit[cells.at(i)];
    const bool wrong = cells.wrong(i);
    const bool judged = cells.judged(i);
    const double error = actual == expected ? 0.0 : actual - expected;
    const Colour colour = wrong ? Colour::kRed : Colour::kNone;
    table.add({pointed == i ? "->" : "", info(tensor).rank == 3 ? "" : fmt::format("{}", i),
               paint(style, colour, exact(actual)), exact(expected), number(error), number(limit),
               ratio(judge_cell(actual, expected, limit).ratio),
               wrong    ? paint(style, colour, "WRONG")
               : judged ? ""
                        : "not judged"});
  }
  return table.text(style);
}

// At most max_cells of the range, with the first wrong one among them.
Range cut(const Range& range, std::int64_t max_cells, std::optional<std::int64_t> first_wrong) {
  if (range.size() <= max_cells) return range;
  Range r = range;
  if (first_wrong) r.begin = std::max(range.begin, *first_wrong - max_cells / 2 + 1);
  r.begin = std::min(r.begin, range.end - max_cells);
  r.end = r.begin + max_cells;
  return r;
}

std::int64_t clamp_index(std::int64_t i, std::int64_t extent) {
  return std::clamp<std::int64_t>(i, 0, std::max<std::int64_t>(extent - 1, 0));
}

// The cells that KV tile `tile` concerns.
Range range_of(const RowTensor& data, Tensor tensor, std::int64_t tile, const Geometry& g) {
  const TensorInfo& t = info(tensor);
  if (t.rank == 3) return {0, 0, 1};
  switch (t.axes[3]) {
    case Axis::kKey:
      return {0, std::min<std::int64_t>(tile * g.tile.block_n, data.inner0),
              std::min<std::int64_t>((tile + 1) * g.tile.block_n, data.inner0)};
    case Axis::kKvTile:
      if (t.rank == 5) return {clamp_index(tile, data.inner0), 0, data.inner1};
      return {0, std::max<std::int64_t>(0, tile - 3),
              std::min<std::int64_t>(tile + 4, data.inner0)};
    case Axis::kSplit:
      if (t.rank == 5) return {clamp_index(tile / g.tiles_per_split, data.inner0), 0, data.inner1};
      return {0, 0, data.inner0};
    default:
      return {0, 0, data.inner0};
  }
}

std::string view_of(const RowTensor& data, Tensor tensor, std::int64_t tile, const Geometry& g,
                    const ViewOptions& options, const Style& style) {
  const Range range = range_of(data, tensor, tile, g);
  const Cells cells(data, range);
  const Range shown = cut(range, options.max_cells, cells.first_wrong());
  const std::int64_t wrong = cells.num_wrong();

  std::string title = paint(style, Colour::kBold, name(tensor));
  if (info(tensor).rank == 5) title += fmt::format(", {} {}", axis_name(tensor, 3), range.outer);
  if (info(tensor).rank > 3 && info(tensor).axes[3] == Axis::kKey)
    title += fmt::format(", kv tile {} (keys {} to {})", tile, range.begin, range.end - 1);
  const std::int64_t judged = cells.num_judged();
  const std::string verdict =
      wrong > 0     ? paint(style, Colour::kRed, fmt::format("{} of {} wrong", wrong, range.size()))
      : judged == 0 ? paint(style, Colour::kYellow, "not judged: no bound")
      : judged < range.size()
          ? fmt::format("right in the {} of {} that are judged", judged, range.size())
          : "right";
  std::string s = title + ": " + verdict;
  if (shown.size() < range.size()) s += fmt::format(", {} of {} shown", shown.size(), range.size());
  return s + '\n' + table_of(data, tensor, shown, std::nullopt, style);
}

}  // namespace

std::string window_text(const QueryRow& row, Tensor tensor,
                        const std::array<std::int64_t, 5>& index, const Style& style) {
  const RowTensor& data = row[tensor];
  if (data.actual.empty()) return "";
  const int rank = info(tensor).rank;
  Range range;
  std::int64_t at = 0, extent = 1;
  if (rank == 4) at = index[3], extent = data.inner0;
  if (rank == 5) range.outer = index[3], at = index[4], extent = data.inner1;
  range.begin = std::max<std::int64_t>(0, at - 3);
  range.end = std::min(extent, at + 4);
  return table_of(data, tensor, range, at, style);
}

std::optional<std::int64_t> first_wrong_kv_tile(const QueryRow& row, Stage stage,
                                                const Geometry& geometry) {
  for (const TensorInfo& t : kTensors) {
    const RowTensor& data = row[t.id];
    if (t.stage != stage || t.rank == 3 || data.actual.empty()) continue;
    for (std::size_t i = 0; i < data.actual.size(); ++i) {
      if (judge_cell(data.actual[i], data.expected[i], data.limit[i]).passes) continue;
      const std::int64_t at = static_cast<std::int64_t>(i) / data.inner1;
      if (t.axes[3] == Axis::kKey) return at / geometry.tile.block_n;
      if (t.axes[3] == Axis::kKvTile) return at;
      if (t.axes[3] == Axis::kSplit) return at * geometry.tiles_per_split;
      break;  // along dims only: no KV tile to name
    }
  }
  return std::nullopt;
}

std::string stage_view(const QueryRow& row, Stage stage, const Geometry& geometry,
                       const ViewOptions& options, const Style& style) {
  const std::int64_t tile =
      options.kv_tile.value_or(first_wrong_kv_tile(row, stage, geometry).value_or(0));
  std::string s;
  for (const TensorInfo& t : kTensors) {
    if (t.stage != stage || row[t.id].actual.empty()) continue;
    if (!s.empty()) s += '\n';
    s += view_of(row[t.id], t.id, tile, geometry, options, style);
  }
  return s;
}

}  // namespace attn_diag::report

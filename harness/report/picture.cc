#include "harness/report/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "attn_diag/reference/reference.h"
#include "harness/report/levels.h"

namespace attn_diag::report {
namespace {

constexpr int kMaxRows = 16;

class Grid {
 public:
  Grid(const TensorComparison& c, const Problem& p, const Geometry& g, const Region& r)
      : x_comparison(c),
        x_problem(p),
        x_geometry(g),
        x_first_tile(r.origin[2] / g.tile.block_m),
        x_shape(c.picture_shape) {}

  std::int64_t heads() const { return x_shape[0] * x_shape[1]; }
  std::int64_t rows() const { return x_shape[2]; }
  std::int64_t columns() const { return x_shape[3]; }
  std::int64_t first_tile() const { return x_first_tile; }

  const TileError& at(std::int64_t head, std::int64_t row, std::int64_t column) const {
    return x_comparison
        .picture[static_cast<std::size_t>((head * rows() + row) * columns() + column)];
  }
  bool wrong(std::int64_t head) const {
    for (std::int64_t r = 0; r < rows(); ++r)
      for (std::int64_t c = 0; c < columns(); ++c)
        if (at(head, r, c).mismatched > 0) return true;
    return false;
  }
  // The worst of a group of tiles.
  Level level(std::int64_t head, std::int64_t row, std::int64_t column, std::int64_t by_row,
              std::int64_t by_column) const {
    Level worst = kMasked;
    for (std::int64_t r = row; r < std::min(row + by_row, rows()); ++r)
      for (std::int64_t c = column; c < std::min(column + by_column, columns()); ++c)
        worst = std::max(worst, one(at(head, r, c), r, c));
    return worst;
  }

 private:
  Level one(const TileError& e, std::int64_t row, std::int64_t column) const {
    const bool has_kv_tiles = columns() == num_kv_tiles(x_problem, x_geometry);
    if (e.mismatched == 0 &&
        (e.compared == 0 ||
         (has_kv_tiles && reference::tile_fully_masked(
                              x_problem, x_geometry, static_cast<std::int32_t>(row + x_first_tile),
                              static_cast<std::int32_t>(column)))))
      return kMasked;
    return e.mismatched == 0 ? kRight : wrong_level(e.max_err_over_bound);
  }

  const TensorComparison& x_comparison;
  const Problem& x_problem;
  const Geometry& x_geometry;
  std::int64_t x_first_tile;
  std::array<std::int64_t, 4> x_shape;
};

}  // namespace

std::string picture(const TensorComparison& comparison, const Problem& problem,
                    const Geometry& geometry, const Region& region, const Style& style,
                    int max_heads) {
  const Grid grid(comparison, problem, geometry, region);
  if (grid.heads() == 0 || grid.rows() == 0 || grid.columns() == 0) return "";
  std::vector<std::int64_t> shown;
  for (const bool wrong : {true, false})
    for (std::int64_t h = 0; h < grid.heads(); ++h)
      if (grid.wrong(h) == wrong && std::ssize(shown) < max_heads) shown.push_back(h);
  std::sort(shown.begin(), shown.end());

  // 8 columns of row labels; every head takes its cells and a gap of 3.
  const auto heads = static_cast<std::int64_t>(shown.size());
  const std::int64_t room = std::max<std::int64_t>(4, (style.width - 10) / heads - 4);
  const std::int64_t by_column = (grid.columns() + room - 1) / room;
  const std::int64_t by_row = (grid.rows() + kMaxRows - 1) / kMaxRows;
  const std::int64_t cells = (grid.columns() + by_column - 1) / by_column;
  const auto field = static_cast<std::size_t>(std::max<std::int64_t>(cells, 8) + 3);

  const bool split_axis =
      info(comparison.tensor).rank > 3 && info(comparison.tensor).axes[3] == Axis::kSplit;
  std::string out = fmt::format("  Error of {} by query tile (down){}", name(comparison.tensor),
                                grid.columns() == 1 ? ""
                                : split_axis        ? " and split (across)"
                                                    : " and KV tile (across)");
  if (by_row > 1 || by_column > 1)
    out += fmt::format(", the worst of each {} x {} tiles", by_row, by_column);
  out += '\n';

  std::string heading = "          ";
  for (std::int64_t h : shown) {
    const std::int64_t batch = region.origin[0] + h / comparison.picture_shape[1];
    const std::int64_t head = region.origin[1] + h % comparison.picture_shape[1];
    std::string label =
        problem.batch > 1 ? fmt::format("b{} h{}", batch, head) : fmt::format("head {}", head);
    label.resize(std::max(field, label.size() + 1), ' ');
    heading += label;
  }
  heading.erase(heading.find_last_not_of(' ') + 1);
  out += heading + '\n';

  bool any_masked = false;
  for (std::int64_t r = 0; r < grid.rows(); r += by_row) {
    std::string line = fmt::format("  {:>6}  ", r + grid.first_tile());
    for (std::size_t i = 0; i < shown.size(); ++i) {
      for (std::int64_t c = 0; c < grid.columns(); c += by_column) {
        const Level level = grid.level(shown[i], r, c, by_row, by_column);
        any_masked |= level == kMasked;
        line += glyph(level, style);
      }
      if (i + 1 < shown.size()) line.append(field - static_cast<std::size_t>(cells), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  if (heads < grid.heads())
    out += fmt::format("    {} more not drawn.\n", plural(grid.heads() - heads, "head"));
  return out + legend(style, any_masked);
}

}  // namespace attn_diag::report

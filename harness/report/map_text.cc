#include "harness/report/map_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/levels.h"

namespace attn_diag::report {
namespace {

constexpr std::int64_t kMostLines = 24, kLabel = 10;

std::string limit_name(std::size_t bin) {
  constexpr std::size_t kMore = ErrorHistogram::kEdges + 1;
  if (bin == 0) return "0";
  if (bin == kMore + 1) return "not finite";
  const auto edge = static_cast<int>(bin) - 1;
  const double least = std::pow(10.0, ErrorHistogram::kFirstExponent + edge / 2);
  if (bin == kMore) return fmt::format("> {:g}x", std::pow(10.0, ErrorHistogram::kLastExponent));
  return fmt::format("<= {:g}x", edge % 2 == 0 ? least : 3 * least);
}

}  // namespace

std::string map_text(const ErrorMap& map, const Problem& problem, const Style& style) {
  if (map.worst.empty()) return "";
  const std::int64_t room = std::max<std::int64_t>(8, style.width - kLabel - 2);
  const std::int64_t by_row = (map.down() + kMostLines - 1) / kMostLines;
  const std::int64_t by_column = (map.wide() + room - 1) / room;
  std::string out =
      fmt::format("  Error of {}, {}head {}, by query (down)", name(map.tensor),
                  problem.batch > 1 ? fmt::format("batch {}, ", map.batch) : "", map.head);
  if (map.columns > 1) out += fmt::format(" and {} (across)", name(map.across));
  const std::int64_t queries = map.by_query * by_row, columns = map.by_column * by_column;
  if (queries > 1 || columns > 1)
    out += fmt::format(",\n  the worst of each {} x {}", queries, columns);
  out += '\n';
  bool any_masked = false;
  for (std::int64_t r = 0; r < map.down(); r += by_row) {
    std::string line = fmt::format("  {:>6}  ", map.first_query + r * map.by_query);
    for (std::int64_t c = 0; c < map.wide(); c += by_column) {
      float worst = -1;
      for (std::int64_t i = r; i < std::min(r + by_row, map.down()); ++i)
        for (std::int64_t k = c; k < std::min(c + by_column, map.wide()); ++k)
          worst = std::max(worst, map.worst[static_cast<std::size_t>(i * map.wide() + k)]);
      any_masked |= worst < 0;
      line += glyph(level_of(worst), style);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out + legend(style, any_masked);
}

std::string histogram_text(const ErrorHistogram& histogram, const Style& style) {
  const auto& bins = histogram.by_limit;
  const std::int64_t most = *std::max_element(bins.begin(), bins.end());
  if (most == 0) return "";
  const std::int64_t room = std::max<std::int64_t>(8, style.width - 32);
  std::string out = fmt::format("  Cells of {} by err/bound, all heads\n", name(histogram.tensor));
  std::size_t first = 0, last = bins.size() - 1;
  while (bins[first] == 0) ++first;
  while (bins[last] == 0) --last;
  // Up to 1 is right.
  constexpr std::size_t kLastRight = 1 - 2 * ErrorHistogram::kFirstExponent;
  for (std::size_t i = first; i <= last; ++i) {
    // By the logarithm: one wrong cell of a million is one that shows.
    const double share = bins[i] == 0 ? 0.0
                                      : (1 + std::log2(static_cast<double>(bins[i]))) /
                                            (1 + std::log2(static_cast<double>(most)));
    std::string bar;
    for (int k = 0; k < std::lround(share * static_cast<double>(room)); ++k)
      bar += style.unicode ? "█" : "#";
    out += fmt::format("    {:>10} {:>13}  ", limit_name(i), count(bins[i]));
    out += paint(style, i > kLastRight ? Colour::kRed : Colour::kDim, bar) + '\n';
  }
  return out;
}

std::string heads_text(const TensorComparison& comparison, const Region& region,
                       const Style& style) {
  const auto& shape = comparison.picture_shape;
  const std::int64_t heads = shape[0] * shape[1], tiles = shape[2] * shape[3];
  if (heads < 2 || tiles == 0) return "";
  std::string out = fmt::format("  Worst of {} in each head\n", name(comparison.tensor));
  const std::int64_t room = std::max<std::int64_t>(8, style.width - 24);
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; h += room) {
      out += fmt::format(
          "    {:>18}  ",
          shape[0] > 1 ? fmt::format("batch {} head {}", region.origin[0] + b, region.origin[1] + h)
                       : fmt::format("head {}", region.origin[1] + h));
      for (std::int64_t i = h; i < std::min(h + room, shape[1]); ++i) {
        double worst = -1;
        for (std::int64_t k = 0; k < tiles; ++k) {
          const TileError& tile =
              comparison.picture[static_cast<std::size_t>((b * shape[1] + i) * tiles + k)];
          if (tile.compared > 0) worst = std::max(worst, tile.max_err_over_bound);
        }
        out += glyph(level_of(worst), style);
      }
      out += '\n';
    }
  return out;
}

}  // namespace attn_diag::report

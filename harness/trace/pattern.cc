// Sentences about where a tensor is wrong, from sums along its axes.
#include "attn_diag/harness/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/reference/reference.h"
#include "harness/base/index_ranges.h"
#include "harness/capture/cell_places.h"

namespace attn_diag {
namespace {

using Indices = std::vector<std::int64_t>;

std::string plural(std::string_view noun, std::size_t n) {
  if (n == 1) return std::string(noun);
  if (noun == "batch") return "batches";
  if (noun == "query") return "queries";
  return std::string(noun) + "s";
}

// One axis, split into the indices with a mismatch and those without.
struct AxisView {
  std::string_view noun;
  Indices wrong, exact;  // absolute, ascending

  AxisView(std::string_view noun_in, const Indices& counts, std::int64_t origin) : noun(noun_in) {
    for (std::size_t i = 0; i < counts.size(); ++i)
      (counts[i] > 0 ? wrong : exact).push_back(origin + static_cast<std::int64_t>(i));
  }
  std::size_t size() const { return wrong.size() + exact.size(); }
  bool all_wrong() const { return exact.empty(); }
  std::string text(const Indices& indices) const {
    return fmt::format("{} {}", plural(noun, indices.size()), index_ranges(indices));
  }
};

MarkedCells marked_cells(const WrongCells& cells, const Geometry& geometry, std::uint8_t bits) {
  const Region& region = cells.region;
  const std::int64_t rows = region.extent[0] * region.extent[1] * region.extent[2];
  MarkedCells out;
  out.columns = static_cast<std::int64_t>(cells.cells.size()) / std::max<std::int64_t>(1, rows);
  out.block_m = geometry.tile.block_m;
  for (std::int64_t row = 0; row < rows; ++row)
    out.query.push_back(region.origin[2] + row % region.extent[2]);
  for (const std::uint8_t cell : cells.cells) out.marked.push_back((cell & bits) != 0 ? 1 : 0);
  return out;
}

class Describer {
 public:
  Describer(const WrongCells& cells, const Problem& problem, const Geometry& geometry)
      : x_cells(cells), x_problem(problem), x_geometry(geometry) {}

  std::vector<PatternStatement> describe() {
    if (x_cells.mismatched == 0) return {};
    batches_and_heads();
    queries();
    tiles();
    diagonal();
    dims();
    places();
    values();
    return std::move(x_out);
  }

 private:
  void say(StatementKind kind, std::string text) { x_out.push_back({kind, std::move(text)}); }

  // Says which indices are wrong, and which exact where these are the fewer.
  void axis(const AxisView& view) {
    if (view.size() < 2) return;
    if (view.all_wrong()) {
      say(StatementKind::kWrong, fmt::format("every {}", view.noun));
    } else if (view.exact.size() < view.wrong.size()) {
      say(StatementKind::kWrong,
          fmt::format("every {} but {}", view.noun, index_ranges(view.exact)));
      exact(view);
    } else {
      say(StatementKind::kWrong, "only " + view.text(view.wrong));
    }
  }

  void exact(const AxisView& view) {
    say(StatementKind::kExact,
        fmt::format("{} {} exact", view.text(view.exact), view.exact.size() == 1 ? "is" : "are"));
  }

  void batches_and_heads() {
    const AxisView batch("batch", x_cells.by_axis[0], x_cells.region.origin[0]);
    const AxisView head("head", x_cells.by_axis[1], x_cells.region.origin[1]);
    axis(batch);
    axis(head);
    const Indices zero = {0};
    if (batch.size() > 1 && batch.exact == zero)
      say(StatementKind::kHint, "batch 0 alone is exact: fits a wrong batch stride or index");
    if (head.size() < 2 || head.all_wrong()) return;
    // kv_heads divides heads: checked when the problem was.
    const std::int64_t group = x_problem.heads / x_problem.kv_heads;
    if (group > 1 && x_problem.kv_heads > 1) {
      const auto same_in_both = [&](std::int64_t h) { return h / group == h % x_problem.kv_heads; };
      if (std::all_of(head.exact.begin(), head.exact.end(), same_in_both) &&
          std::none_of(head.wrong.begin(), head.wrong.end(), same_in_both)) {
        say(StatementKind::kHint, fmt::format("the exact heads are those with h / {} = h mod {}: "
                                              "fits a KV head taken as h mod kv_heads",
                                              group, x_problem.kv_heads));
        return;
      }
    }
    if (head.exact == zero)
      say(StatementKind::kHint, "head 0 alone is exact: fits a wrong head stride or index");
  }

  void queries() {
    const AxisView query("query", x_cells.by_axis[2], x_cells.region.origin[2]);
    if (query.size() < 2) return;
    const std::int64_t block_m = x_geometry.tile.block_m;
    const std::int64_t last_tile = (x_problem.seqlen_q - 1) / block_m;
    if (query.all_wrong() || query.exact.size() <= 4) {
      axis(query);
    } else if (last_tile > 0 && query.wrong.front() >= last_tile * block_m) {
      say(StatementKind::kWrong,
          fmt::format("only the last query tile ({})", query.text(query.wrong)));
    } else if (const auto text = residues(query)) {
      say(StatementKind::kWrong, *text);
    } else {
      axis(query);
    }
    visibility(query);
  }

  // "queries with q mod 16 in 8-15", for the smallest modulus that tells wrong from exact.
  std::optional<std::string> residues(const AxisView& view) const {
    Indices moduli = {2, 4, 8, 16, 32};
    if (view.noun == "query") moduli.push_back(x_geometry.tile.block_m);
    std::sort(moduli.begin(), moduli.end());
    for (const std::int64_t modulus : moduli) {
      if (modulus < 2 || static_cast<std::int64_t>(view.size()) < 2 * modulus) continue;
      std::vector<int> kinds(static_cast<std::size_t>(modulus), 0);  // 1: wrong, 2: exact, 3: both
      for (const std::int64_t i : view.wrong) kinds[static_cast<std::size_t>(i % modulus)] |= 1;
      for (const std::int64_t i : view.exact) kinds[static_cast<std::size_t>(i % modulus)] |= 2;
      if (std::count(kinds.begin(), kinds.end(), 3) > 0) continue;
      Indices wrong;
      for (std::int64_t r = 0; r < modulus; ++r)
        if (kinds[static_cast<std::size_t>(r)] == 1) wrong.push_back(r);
      return fmt::format("every {} with {} mod {} in {}", view.noun,
                         view.noun == "query" ? "q" : "d", modulus, index_ranges(wrong));
    }
    return std::nullopt;
  }

  struct Sees {
    std::int64_t keys = 0, tiles = 0, splits = 0;
  };
  Sees sees(std::int64_t query) const {
    Sees out;
    std::int64_t last_tile = -1, last_split = -1;
    for (std::int32_t key = 0; key < x_problem.seqlen_k; ++key) {
      if (!reference::visible(x_problem, static_cast<std::int32_t>(query), key)) continue;
      const std::int64_t tile = key / x_geometry.tile.block_n;
      const std::int64_t split = tile / x_geometry.tiles_per_split;
      ++out.keys;
      out.tiles += tile != last_tile;
      out.splits += split != last_split;
      last_tile = tile;
      last_split = split;
    }
    return out;
  }

  // Whether what a query can see tells the exact ones from the wrong ones. Scores know of nothing but
  // their own query and key.
  void visibility(const AxisView& query) {
    if (query.all_wrong() || stage_of(x_cells.tensor) == Stage::kQk) return;
    std::vector<Sees> exact_sees, wrong_sees;
    for (const std::int64_t q : query.exact) exact_sees.push_back(sees(q));
    for (const std::int64_t q : query.wrong) wrong_sees.push_back(sees(q));
    const auto tells = [&](std::int64_t Sees::*of) {
      const auto at_most_one = [of](const Sees& s) { return s.*of <= 1; };
      return std::all_of(exact_sees.begin(), exact_sees.end(), at_most_one) &&
             std::none_of(wrong_sees.begin(), wrong_sees.end(), at_most_one) &&
             std::any_of(exact_sees.begin(), exact_sees.end(),
                         [of](const Sees& s) { return s.*of == 1; });
    };
    const bool has_factor_of_l =
        x_cells.tensor == Tensor::kL ||
        (stage_of(x_cells.tensor) == Stage::kReduce && x_cells.tensor != Tensor::kRunningM);
    if (has_factor_of_l && tells(&Sees::keys)) {
      say(StatementKind::kHint,
          "the exact queries are those that see one key, where l = 1: fits a wrong factor of l");
    } else if (tells(&Sees::tiles)) {
      say(StatementKind::kHint,
          "the exact queries are those that see one KV tile: fits a rescale between KV tiles that "
          "is wrong or missing");
    } else if (x_geometry.num_splits > 1 && tells(&Sees::splits)) {
      say(StatementKind::kHint,
          "the exact queries are those that see one split: fits a wrong merge of the splits");
    }
  }

  std::int64_t kv_tiles() const { return num_kv_tiles(x_problem, x_geometry); }

  void tiles() {
    const TensorInfo& tensor = info(x_cells.tensor);
    if (tensor.rank > 3 && tensor.axes[3] == Axis::kSplit)
      axis(AxisView("split", x_cells.by_axis[3], 0));
    if (x_cells.by_tile.empty() || kv_tiles() < 2) return;
    Indices counts(static_cast<std::size_t>(kv_tiles()), 0);
    for (std::size_t i = 0; i < x_cells.by_tile.size(); ++i)
      counts[i % counts.size()] += x_cells.by_tile[i];
    const AxisView view("KV tile", counts, 0);
    axis(view);
    const std::int64_t tail = x_problem.seqlen_k % x_geometry.tile.block_n;
    if (view.wrong == Indices{kv_tiles() - 1} && tail != 0) {
      say(StatementKind::kHint,
          fmt::format("the last KV tile holds {} keys of {}: fits tail keys that are not masked or "
                      "not loaded",
                      tail, x_geometry.tile.block_n));
    }
    if (view.exact == Indices{0}) {
      say(StatementKind::kHint,
          "the first KV tile is exact and later ones are not: fits what is carried from tile to "
          "tile (row max, rescale) or a tile's offset");
    }
    mask_edges();
  }

  // How much of a (query tile, KV tile) is visible.
  enum class Shown { kNothing, kPart, kAll };
  Shown shown(std::int64_t query_tile, std::int64_t kv_tile) const {
    const TileShape tile = x_geometry.tile;
    const auto q0 = static_cast<std::int32_t>(query_tile * tile.block_m);
    const auto k0 = static_cast<std::int32_t>(kv_tile * tile.block_n);
    bool any = false, all = true;
    for (std::int32_t q = q0; q < std::min(q0 + tile.block_m, x_problem.seqlen_q); ++q) {
      for (std::int32_t k = k0; k < std::min(k0 + tile.block_n, x_problem.seqlen_k); ++k) {
        const bool visible = reference::visible(x_problem, q, k);
        any |= visible;
        all &= visible;
      }
    }
    return all ? Shown::kAll : any ? Shown::kPart : Shown::kNothing;
  }

  void mask_edges() {
    if (x_problem.mask.kind == MaskKind::kNone) return;
    std::array<bool, 3> wrong{};  // by Shown
    for (std::size_t i = 0; i < x_cells.by_tile.size(); ++i) {
      if (x_cells.by_tile[i] == 0) continue;
      const auto at = static_cast<std::int64_t>(i);
      wrong[static_cast<std::size_t>(shown(at / kv_tiles(), at % kv_tiles()))] = true;
    }
    const auto only = [&](Shown s) {
      return std::count(wrong.begin(), wrong.end(), true) == 1 &&
             wrong[static_cast<std::size_t>(s)];
    };
    if (only(Shown::kPart)) {
      say(StatementKind::kHint, "only tiles that the mask cuts are wrong: fits the mask");
    } else if (only(Shown::kNothing)) {
      say(StatementKind::kHint,
          "only tiles in which every key is masked are wrong: fits exp(-inf - -inf)");
    }
  }

  void diagonal() {
    Indices where;  // key - query
    for (std::size_t i = 0; i < x_cells.by_diagonal.size(); ++i) {
      if (x_cells.by_diagonal[i] > 0)
        where.push_back(static_cast<std::int64_t>(i) - x_problem.seqlen_q + 1);
    }
    if (where.size() != 1 || x_problem.mask.kind == MaskKind::kNone) return;
    say(StatementKind::kWrong, where[0] == 0
                                   ? std::string("only where key = query")
                                   : fmt::format("only where key = query {} {}",
                                                 where[0] < 0 ? '-' : '+', std::abs(where[0])));
    say(StatementKind::kHint, "wrong cells lie on one diagonal: fits a mask that is off by one");
  }

  void dims() {
    const TensorInfo& tensor = info(x_cells.tensor);
    for (std::size_t i = 3; i < static_cast<std::size_t>(tensor.rank); ++i) {
      if (tensor.axes[i] != Axis::kDim) continue;
      const AxisView dim("dim", x_cells.by_axis[i], 0);
      const auto text = dim.all_wrong() ? std::nullopt : residues(dim);
      if (text) {
        say(StatementKind::kWrong, *text);
      } else {
        axis(dim);
      }
    }
  }

  // Places inside blocks and at threads: of wrong cells, of cells that nobody wrote, and of NaN.
  void places() {
    if (x_cells.cells.empty()) return;
    struct Kind {
      std::uint8_t bits;
      CellWords words;
    };
    std::vector<std::uint8_t> last;
    for (const Kind& kind :
         {Kind{kCellWrong, {"wrong", "right"}}, Kind{kCellUnwritten, {"unwritten", "written"}},
          Kind{kCellNaN, {"NaN", "other"}}}) {
      MarkedCells cells = marked_cells(x_cells, x_geometry, kind.bits);
      if (cells.marked == last) continue;  // said already
      if (const std::optional<std::string> rule = place_rule(cells, kind.words))
        say(StatementKind::kWrong,
            kind.bits == kCellWrong ? *rule : fmt::format("{} {}", kind.words.marked, *rule));
      last = std::move(cells.marked);
    }
  }

  void values() {
    const std::int64_t n = x_cells.mismatched;
    if (x_cells.nan == n) {
      say(StatementKind::kWrong, "every wrong value is NaN");
    } else if (x_cells.nan > 0) {
      say(StatementKind::kWrong, fmt::format("{} of {} wrong values are NaN", x_cells.nan, n));
    }
    if (x_cells.infinite == n) say(StatementKind::kWrong, "every wrong value is infinite");
    if (x_cells.zero == n) {
      say(StatementKind::kWrong, "every wrong value is 0");
      return;
    }
    // A handful of rows proves nothing.
    if (x_cells.rows_explained < std::max<std::int64_t>(4, x_cells.rows * 9 / 10)) return;
    const double low = x_cells.min_factor, high = x_cells.max_factor;
    if (high - low <= 0.01 * std::max(std::fabs(low), std::fabs(high))) {
      const double factor = 0.5 * (low + high);
      say(StatementKind::kWrong, fmt::format("actual = {:.4g} * expected throughout", factor));
      named_factor(factor);
    } else if (info(x_cells.tensor).rank > 3) {  // one cell has a factor, whatever it is
      say(StatementKind::kWrong,
          fmt::format("in each row actual = g * expected, with g from {:.4g} to {:.4g}", low,
                      high));
    }
  }

  void named_factor(double factor) {
    const auto is = [&](double x) { return std::fabs(factor - x) <= 0.01 * std::fabs(x); };
    const double scale = x_problem.softmax_scale;
    if (x_cells.tensor == Tensor::kLse) {
      if (is(std::numbers::log2e))
        say(StatementKind::kHint,
            "that is log2 e: fits an lse in base 2; multiply it by ln 2, or declare Lse::kBase2");
      if (is(std::numbers::ln2))
        say(StatementKind::kHint,
            "that is ln 2: fits an lse in base e that is declared, or converted, as one in base 2");
    }
    if (x_cells.tensor != Tensor::kS || is(1.0)) return;
    if (is(std::numbers::log2e) && !is(scale) && !is(1.0 / scale))
      say(StatementKind::kHint,
          "that is log2 e: fits scores in base 2, for exp2; declare Scores::kBase2");
    if (is(scale)) say(StatementKind::kHint, "that is softmax_scale: fits a scale applied twice");
    if (is(1.0 / scale))
      say(StatementKind::kHint, "that is 1 / softmax_scale: fits a scale that is missing");
  }

  const WrongCells& x_cells;
  const Problem& x_problem;
  const Geometry& x_geometry;
  std::vector<PatternStatement> x_out;
};

}  // namespace

std::vector<PatternStatement> describe_pattern(const WrongCells& cells, const Problem& problem,
                                               const Geometry& geometry) {
  return Describer(cells, problem, geometry).describe();
}

}  // namespace attn_diag

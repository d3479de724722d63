#include "attn_diag/harness/pattern.h"

#include <functional>
#include <string>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

Problem causal_problem() {
  Problem p;
  p.batch = 1;
  p.heads = 2;
  p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 32;
  p.head_dim = p.head_dim_v = 8;
  p.mask.kind = MaskKind::kCausal;
  p.softmax_scale = 0.25f;
  return p;
}

Geometry tiles_of(std::int32_t block_m, std::int32_t block_n) {
  Geometry g;
  g.tile = {block_m, block_n};
  g.tiles_per_split = 1000;
  return g;
}

using IsWrong = std::function<bool(int b, int h, int q, int i0, int i1)>;

// The sums that collect_wrong_cells would make of a whole tensor.
WrongCells cells_of(Tensor t, const Problem& p, const Geometry& g, const IsWrong& is_wrong) {
  WrongCells cells;
  cells.tensor = t;
  cells.region = whole(p);
  const auto shape = tensor_shape(t, p, g);
  for (std::size_t i = 0; i < shape.size(); ++i)
    cells.by_axis[i].assign(static_cast<std::size_t>(shape[i]), 0);
  const Axis fourth = shape.size() > 3 ? info(t).axes[3] : Axis::kDim;
  const bool keys = fourth == Axis::kKey, tiled = keys || fourth == Axis::kKvTile;
  const int kv_tiles = num_kv_tiles(p, g);
  if (tiled) cells.by_tile.assign(static_cast<std::size_t>(num_query_tiles(p, g) * kv_tiles), 0);
  if (keys) cells.by_diagonal.assign(static_cast<std::size_t>(p.seqlen_q + p.seqlen_k), 0);
  const auto inner0 = static_cast<int>(shape.size() > 3 ? shape[3] : 1);
  const auto inner1 = static_cast<int>(shape.size() > 4 ? shape[4] : 1);
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads; ++h)
      for (int q = 0; q < p.seqlen_q; ++q)
        for (int i0 = 0; i0 < inner0; ++i0)
          for (int i1 = 0; i1 < inner1; ++i1) {
            ++cells.compared;
            if (!is_wrong(b, h, q, i0, i1)) continue;
            ++cells.mismatched;
            const std::array<int, 5> at = {b, h, q, i0, i1};
            for (std::size_t i = 0; i < shape.size(); ++i)
              ++cells.by_axis[i][static_cast<std::size_t>(at[i])];
            const int tile = keys ? i0 / g.tile.block_n : i0;
            if (tiled)
              ++cells.by_tile[static_cast<std::size_t>(q / g.tile.block_m * kv_tiles + tile)];
            if (keys) ++cells.by_diagonal[static_cast<std::size_t>(i0 - q + p.seqlen_q - 1)];
          }
  return cells;
}

std::string text_of(const WrongCells& cells, const Problem& p, const Geometry& g) {
  std::string text;
  for (const PatternStatement& s : describe_pattern(cells, p, g)) {
    text += s.kind == StatementKind::kHint    ? "hint: "
            : s.kind == StatementKind::kExact ? "ok: "
                                              : "";
    text += s.text + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("where nothing is wrong there is no pattern") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  CHECK(text_of(cells_of(Tensor::kO, p, g, [](auto...) { return false; }), p, g).empty());
}

TEST_CASE("a factor of l is recognised by the exact query that sees one key") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  const WrongCells cells =
      cells_of(Tensor::kO, p, g, [](int, int, int q, int, int) { return q > 0; });
  CHECK(
      text_of(cells, p, g) ==
      "every head\n"
      "every query but 0\n"
      "ok: query 0 is exact\n"
      "hint: the exact queries are those that see one key, where l = 1: fits a wrong factor of l\n"
      "every dim\n");
}

TEST_CASE("no factor of l is suspected where l has no part") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  for (const Tensor t : {Tensor::kS, Tensor::kM, Tensor::kP, Tensor::kPartialO}) {
    INFO(name(t));
    const WrongCells cells = cells_of(t, p, g, [](int, int, int q, int, int) { return q > 0; });
    const std::string text = text_of(cells, p, g);
    CHECK(text.find("query 0 is exact") != std::string::npos);
    CHECK(text.find("factor of l") == std::string::npos);
  }
}

TEST_CASE("queries that see one KV tile being exact points at the rescale") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  const WrongCells cells =
      cells_of(Tensor::kO, p, g, [](int, int, int q, int, int) { return q >= 16; });
  const std::string text = text_of(cells, p, g);
  CHECK_THAT(text, contains("only the last query tile (queries 16-31)"));
  CHECK_THAT(text, contains("see one KV tile: fits a rescale between KV tiles"));
}

TEST_CASE("queries that see one split being exact points at the merge") {
  const Problem p = causal_problem();
  Geometry g = tiles_of(32, 4);
  g.num_splits = 2;
  g.tiles_per_split = 4;
  g.has_split_merge = true;
  const std::string text =
      text_of(cells_of(Tensor::kO, p, g, [](int, int, int q, int, int) { return q >= 16; }), p, g);
  CHECK_THAT(text, contains("only queries 16-31"));
  CHECK_THAT(text, contains("see one split: fits a wrong merge"));
}

TEST_CASE("rows wrong by their place in a tile are said by their residue") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  const std::string text = text_of(
      cells_of(Tensor::kO, p, g, [](int, int, int q, int, int) { return q % 16 >= 8; }), p, g);
  CHECK_THAT(text, contains("every query with q mod 16 in 8-15\n"));
}

TEST_CASE("one exact head points at strides, and the heads that h mod kv_heads serves at GQA") {
  Problem p = causal_problem();
  p.heads = p.kv_heads = 4;
  const Geometry g = tiles_of(16, 16);
  const IsWrong later_heads = [](int, int h, int, int, int) { return h > 0; };
  const std::string stride = text_of(cells_of(Tensor::kS, p, g, later_heads), p, g);
  CHECK_THAT(stride, contains("every head but 0\nok: head 0 is exact\n"));
  CHECK_THAT(stride, contains("hint: head 0 alone is exact: fits a wrong head stride"));

  p.kv_heads = 2;  // h / 2 = h mod 2 for heads 0 and 3
  const IsWrong middle = [](int, int h, int, int, int) { return h == 1 || h == 2; };
  CHECK_THAT(text_of(cells_of(Tensor::kS, p, g, middle), p, g), contains("h mod kv_heads"));
  CHECK_THAT(text_of(cells_of(Tensor::kS, p, g, later_heads), p, g), !contains("mod kv_heads"));
}

TEST_CASE("the tail tile is told from other tiles") {
  Problem p = causal_problem();
  p.mask.kind = MaskKind::kNone;
  p.seqlen_k = 37;
  const Geometry g = tiles_of(16, 16);
  const std::string text =
      text_of(cells_of(Tensor::kL, p, g, [](int, int, int, int t, int) { return t == 2; }), p, g);
  CHECK_THAT(text, contains("only KV tile 2\n"));
  CHECK_THAT(text, contains("the last KV tile holds 5 keys of 16"));
}

TEST_CASE("an exact first KV tile points at what is carried") {
  Problem p = causal_problem();
  p.mask.kind = MaskKind::kNone;
  const Geometry g = tiles_of(16, 8);
  const std::string text = text_of(
      cells_of(Tensor::kRunningL, p, g, [](int, int, int, int t, int) { return t > 0; }), p, g);
  CHECK_THAT(text, contains("ok: KV tile 0 is exact"));
  CHECK_THAT(text, contains("what is carried from tile to tile"));
}

TEST_CASE("a causal mask that is off by one shows as one diagonal in the tiles the mask cuts") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  const std::string text =
      text_of(cells_of(Tensor::kS, p, g,
                       [](int, int, int q, int k, int) { return q % 16 < 15 && k == q + 1; }),
              p, g);
  CHECK_THAT(text, contains("only where key = query + 1\n"));
  CHECK_THAT(text, contains("off by one"));
  CHECK_THAT(text, contains("only tiles that the mask cuts are wrong"));
}

TEST_CASE("fully masked tiles are named") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  const std::string text = text_of(
      cells_of(Tensor::kP, p, g, [](int, int, int q, int k, int) { return q < 16 && k >= 16; }), p,
      g);
  CHECK_THAT(text, contains("every key is masked are wrong: fits exp(-inf - -inf)"));
}

TEST_CASE("dims are said as a range or by residue") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  CHECK_THAT(
      text_of(cells_of(Tensor::kO, p, g, [](int, int, int, int d, int) { return d > 0; }), p, g),
      contains("every dim but 0\nok: dim 0 is exact\n"));
  CHECK_THAT(text_of(cells_of(Tensor::kPartialO, p, g,
                              [](int, int, int, int, int d) { return d % 4 >= 2; }),
                     p, g),
             contains("every dim with d mod 4 in 2-3\n"));
}

TEST_CASE("a constant factor is said, and named where it is the softmax scale") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  WrongCells cells = cells_of(Tensor::kS, p, g, [](auto...) { return true; });
  cells.rows = cells.rows_explained = 64;
  cells.min_factor = 0.2499;
  cells.max_factor = 0.2501;
  CHECK_THAT(text_of(cells, p, g), contains("actual = 0.25 * expected throughout\n"));
  CHECK_THAT(text_of(cells, p, g), contains("fits a scale applied twice"));
  cells.max_factor = 0.5;
  CHECK_THAT(text_of(cells, p, g), contains("with g from 0.2499 to 0.5\n"));
  cells.rows_explained = 30;
  CHECK_THAT(text_of(cells, p, g), !contains("expected"));
}

TEST_CASE("values that are all NaN or all zero are said to be") {
  const Problem p = causal_problem();
  const Geometry g = tiles_of(16, 16);
  WrongCells cells = cells_of(Tensor::kO, p, g, [](auto...) { return true; });
  cells.nan = cells.mismatched;
  CHECK_THAT(text_of(cells, p, g), contains("every wrong value is NaN\n"));
  cells.nan = 0;
  cells.zero = cells.mismatched;
  CHECK_THAT(text_of(cells, p, g), contains("every wrong value is 0\n"));
}

}  // namespace attn_diag

// What of a tile is where it should be: each hypothesis against its formula, spelled out.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

TEST_CASE("stale-tile: the tile that was loaded before") {
  const testing::Case c = make_case({.mask = kCausal});
  check_output(c, variant_of(c, "stale-tile", {"operand = v", "tiles = 1", "right"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return f.v(j >= 16 ? j - 16 : j, d); });
               });
  check_output(c, variant_of(c, "stale-tile", {"operand = k,", "tiles = 2", "zeros"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) { return j >= 32 ? f.k(j - 32, d) : 0; });
               });
}

TEST_CASE("stale-tile: the first tile of a split, or of a window's loop, has none before it") {
  const testing::Case split = make_case({.block_n = 8, .splits = 2});
  // Five tiles: three and two.
  check_output(split, variant_of(split, "stale-tile", {"= v,", "tiles = 1", "loop", "right"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) {
                   return f.v(j < 8 || (j >= 24 && j < 32) ? j : j - 8, d);
                 });
               });
  check_output(split, variant_of(split, "stale-tile", {"= k,", "tiles = 2", "loop", "zeros"}),
               [](const Formula& f) {
                 return with_k(
                     f, [&](int j, int d) { return j >= 16 && j < 24 ? f.k(j - 16, d) : 0; });
               });
  check_output(split, variant_of(split, "stale-tile", {"= v,", "tiles = -1", "loop", "right"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) {
                   return f.v((j >= 16 && j < 24) || j >= 32 ? j : j + 8, d);
                 });
               });
  const Mask window{MaskKind::kWindow, CausalAlignment::kBottomRight, 9, 4};
  const testing::Case c = make_case({.block_n = 8, .mask = window});
  check_output(c, variant_of(c, "stale-tile", {"k and v", "tiles = 1", "loop", "right"}),
               [](const Formula& f) {
                 const int first = std::max(0, f.row.query / 16 * 16 - 9) / 8 * 8;
                 const auto from = [&](int j) { return j < first + 8 ? j : j - 8; };
                 return with_kv(
                     f, [&](int j, int d) { return f.k(from(j), d); },
                     [&](int j, int d) { return f.v(from(j), d); });
               });
}

TEST_CASE("stale-tile: blocks that load q once, and do another query tile with it") {
  // Five query tiles: the block of tile t does t + 3 too.
  const testing::Case c = make_case({.block_m = 8, .mask = kCausal});
  for (const int late : {1, 3})
    check_output(c, variant_of(c, "stale-tile", {"operand = q", "tiles = " + std::to_string(late)}),
                 [&](const Formula& f) {
                   const int i = f.row.query, from = i < 8 * late ? i : i - 8 * late;
                   return attend_with(
                       f, [&](int j, int d) { return f.k(j, d); },
                       [&](int j, int d) { return f.v(j, d); },
                       [&](int d) { return f.q(from, d); });
                 });
}

TEST_CASE("tile-partly-loaded: rows that no warp loads are zeros") {
  const testing::Case c = make_case({});
  const auto loaded = [](double x, int j) { return j % 16 < 12 ? x : 0; };
  check_output(c, variant_of(c, "tile-partly-loaded", {"operand = v", "rows = 12"}),
               [&](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return loaded(f.v(j, d), j); });
               });
  check_output(c, variant_of(c, "tile-partly-loaded", {"k and v", "rows = 12"}),
               [&](const Formula& f) {
                 return with_kv(
                     f, [&](int j, int d) { return loaded(f.k(j, d), j); },
                     [&](int j, int d) { return loaded(f.v(j, d), j); });
               });
  check_output(c, variant_of(c, "tile-partly-loaded", {"operand = q", "rows = 15"}),
               [](const Formula& f) {
                 return f.row.query % 16 < 15 ? f.attend(f.scores()) : f.attend(Vec(40, 0.0));
               });
}

TEST_CASE("columns-step: 16 columns of q.k are left out, or count twice") {
  const testing::Case c = make_case({.head_dim = 48});
  const auto check = [&](int step, int times_n) {
    check_output(
        c,
        variant_of(c, "columns-step",
                   {"step = " + std::to_string(step), "times = " + std::to_string(times_n)}),
        [&](const Formula& f) {
          return with_k(f,
                        [&](int j, int d) { return f.k(j, d) * (d / 16 == step ? times_n : 1); });
        });
  };
  check(0, 0);
  check(1, 0);
  check(2, 2);
}

TEST_CASE("tile-transposed: what is stored as (key, dim) is read as (dim, key)") {
  const testing::Case c = make_case({.seqlen_k = 48, .head_dim = 8, .head_dim_v = 8});
  check_output(c, variant_of(c, "tile-transposed", {"operand = v", "(operand = v, stride = 16)"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) {
                   const int flat = d * 16 + j % 16;
                   return f.v(j / 16 * 16 + flat / 8, flat % 8);
                 });
               });
  check_output(c, variant_of(c, "tile-transposed", {"operand = k", "stored stride = 17"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) {
                   const int flat = j % 16 * 8 + d;
                   const int key = j / 16 * 16 + flat % 17;
                   return key < 48 ? f.k(key, flat / 17) : 0;
                 });
               });
}

TEST_CASE("fragment-elements: elements of a fragment change places") {
  const testing::Case c = make_case({.seqlen_k = 32, .head_dim = 32, .head_dim_v = 32});
  check_output(
      c, variant_of(c, "fragment-elements", {"operand = k", "16x16"}), [](const Formula& f) {
        return with_k(
            f, [&](int j, int d) { return f.k(j / 16 * 16 + d % 16, d / 16 * 16 + j % 16); });
      });
  check_output(c, variant_of(c, "fragment-elements", {"operand = v", "8x8"}), [](const Formula& f) {
    return with_v(f, [&](int j, int d) { return f.v(j / 8 * 8 + d % 8, d / 8 * 8 + j % 8); });
  });
  check_output(
      c, variant_of(c, "fragment-elements", {"operand = v", "d ^ 1"}),
      [](const Formula& f) { return with_v(f, [&](int j, int d) { return f.v(j, d ^ 1); }); });
}

TEST_CASE("leading-dimension: rows are read at another distance") {
  const testing::Case c = make_case({.seqlen_k = 32});
  // Stored 24 apart, zeros between; read 16 apart.
  const auto shifted = [](int at, int row, int dim, const At& x) {
    const int flat = row * 16 + dim;
    return flat % 24 < 16 ? x(at + flat / 24, flat % 24) : 0;
  };
  check_output(
      c, variant_of(c, "leading-dimension", {"operand = k", "stored = 24, read = 16", "the tile"}),
      [&](const Formula& f) {
        return with_k(f, [&](int j, int d) {
          return shifted(j / 16 * 16, j % 16, d, [&](int r, int e) { return f.k(r, e); });
        });
      });
  // Stored 16 apart, read 17 apart: the last rows are those of the next tile, or 0.
  check_output(
      c, variant_of(c, "leading-dimension", {"operand = v", "stored = 16, read = 17", "the tile"}),
      [&](const Formula& f) {
        return with_v(f, [&](int j, int d) {
          const int flat = j % 16 * 17 + d, key = j / 16 * 16 + flat / 16;
          return key < 32 ? f.v(key, flat % 16) : 0;
        });
      });
}

}  // namespace
}  // namespace attn_diag::reference

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
  check_output(c, variant_of(c, "tile-partly-loaded", {"operand = v", "rows = 12", "zeros"}),
               [&](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return loaded(f.v(j, d), j); });
               });
  check_output(c, variant_of(c, "tile-partly-loaded", {"k and v", "rows = 12", "zeros"}),
               [&](const Formula& f) {
                 return with_kv(
                     f, [&](int j, int d) { return loaded(f.k(j, d), j); },
                     [&](int j, int d) { return loaded(f.v(j, d), j); });
               });
  check_output(c, variant_of(c, "tile-partly-loaded", {"operand = q", "rows = 15", "zeros"}),
               [](const Formula& f) {
                 return f.row.query % 16 < 15 ? f.attend(f.scores()) : f.attend(Vec(40, 0.0));
               });
}

TEST_CASE("columns-step: 16 columns of q.k are left out, or count twice") {
  const testing::Case c = make_case({.head_dim = 48});
  const auto check = [&](int step, int times_n) {
    check_output(c,
                 variant_of(c, "columns-step",
                            {"step = " + std::to_string(step), "of = 16",
                             "times = " + std::to_string(times_n)}),
                 [&](const Formula& f) {
                   return with_k(
                       f, [&](int j, int d) { return f.k(j, d) * (d / 16 == step ? times_n : 1); });
                 });
  };
  check(0, 2);
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
  check_output(c, variant_of(c, "fragment-elements", {"= k,", "16x16"}), [](const Formula& f) {
    return with_k(f, [&](int j, int d) { return f.k(j / 16 * 16 + d % 16, d / 16 * 16 + j % 16); });
  });
  check_output(c, variant_of(c, "fragment-elements", {"= v,", "8x8"}), [](const Formula& f) {
    return with_v(f, [&](int j, int d) { return f.v(j / 8 * 8 + d % 8, d / 8 * 8 + j % 8); });
  });
}

TEST_CASE("fragment-elements: halves swapped; k and v alike; q and P by one loader") {
  const testing::Case c = make_case({.seqlen_k = 32, .head_dim = 32, .head_dim_v = 32});
  const auto swapped = [](const At& x, int i, int d) {
    return (i % 16 < 8) != (d % 16 < 8) ? x(i ^ 8, d ^ 8) : x(i, d);
  };
  check_output(c, variant_of(c, "fragment-elements", {"= v,", "swapped"}), [&](const Formula& f) {
    return with_v(f, [&](int j, int d) {
      return swapped([&](int key, int column) { return f.v(key, column); }, j, d);
    });
  });
  check_output(c, variant_of(c, "fragment-elements", {"k and v", "16x16"}), [](const Formula& f) {
    const auto key = [](int j, int d) { return j / 16 * 16 + d % 16; };
    const auto column = [](int j, int d) { return d / 16 * 16 + j % 16; };
    return with_kv(
        f, [&](int j, int d) { return f.k(key(j, d), column(j, d)); },
        [&](int j, int d) { return f.v(key(j, d), column(j, d)); });
  });
  // One KV tile: P of the rows that lend theirs are in their own frames, l is the row's own.
  const testing::Case one =
      make_case({.seqlen_k = 16, .head_dim = 32, .mask = {}, .layout = Layout::kBSHD});
  check_output(
      one, variant_of(one, "fragment-elements", {"q and p", "[c + 8] swapped"}),
      [&](const Formula& f) {
        const auto probs = [&](int i) {
          Vec s;
          for (int j = 0; j < 16; ++j) {
            double dot = 0;
            for (int d = 0; d < 32; ++d)
              dot += swapped([&](int row, int column) { return row < 40 ? f.q(row, column) : 0; },
                             i, d) *
                     f.k(j, d);
            s.push_back(f.scale() * dot);
          }
          return exps(s, largest(s));
        };
        const int i = f.row.query;
        // P of a row past the last query is not known.
        if ((i ^ 8) >= 40) return Vec(16, NAN);
        const Vec own = probs(i), other = probs(i ^ 8);
        Vec p = own;
        for (std::size_t j = 0; j < 16; ++j)
          if ((i % 16 < 8) != (j < 8)) p[j] = other[j ^ 8];
        return times(1 / total(own), f.weighted(p));
      });
}

TEST_CASE("tile-columns-mixed: columns change places, or stand for others") {
  const testing::Case c = make_case({.head_dim = 32, .head_dim_v = 32});
  const auto check = [&](const char* words, const std::function<int(int d)>& from) {
    check_output(
        c, variant_of(c, "tile-columns-mixed", {"operand = v", words}),
        [&](const Formula& f) { return with_v(f, [&](int j, int d) { return f.v(j, from(d)); }); });
  };
  check("= d ^ 1)", [](int d) { return d ^ 1; });
  check("= d ^ 8)", [](int d) { return d ^ 8; });
  check("= d % 16)", [](int d) { return d % 16; });
  check("= d - d % 4)", [](int d) { return d - d % 4; });
  check("= d in reverse of every 8)", [](int d) { return d / 8 * 8 + 7 - d % 8; });
  check("= d + 1, cyclic, of every 32)", [](int d) { return (d + 1) % 32; });
  check("= d - 2, cyclic, of every 16)", [](int d) { return d / 16 * 16 + (d + 14) % 16; });
  // Even columns first, then the odd ones, and the reverse.
  check("= d % 16 * 2 + d / 16 of every 32)", [](int d) { return d < 16 ? 2 * d : 2 * d - 31; });
  check("= d % 2 * 16 + d / 2 of every 32)", [](int d) { return d % 2 * 16 + d / 2; });
  check_output(
      c, variant_of(c, "tile-columns-mixed", {"operand = k", "= d % 16)"}),
      [](const Formula& f) { return with_k(f, [&](int j, int d) { return f.k(j, d % 16); }); });
}

TEST_CASE("tile-rows-mixed: rows of a tile change places, or stand for others") {
  const testing::Case c = make_case({.mask = kCausal});
  // Past the end a tile holds zeros.
  check_output(c, variant_of(c, "tile-rows-mixed", {"operand = v", "r ^ 8)"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return (j ^ 8) < 40 ? f.v(j ^ 8, d) : 0; });
               });
  check_output(c, variant_of(c, "tile-rows-mixed", {"k and v", "reverse of every 4)"}),
               [](const Formula& f) {
                 return with_kv(
                     f, [&](int j, int d) { return f.k(j ^ 3, d); },
                     [&](int j, int d) { return f.v(j ^ 3, d); });
               });
  check_output(
      c, variant_of(c, "tile-rows-mixed", {"operand = q", "r - r % 2)"}), [](const Formula& f) {
        return attend_with(
            f, [&](int j, int d) { return f.k(j, d); }, [&](int j, int d) { return f.v(j, d); },
            [&](int d) { return f.q(f.row.query / 2 * 2, d); });
      });
}

TEST_CASE("tile-swizzled: chunks of columns change places, from row to row others") {
  const testing::Case c = make_case({.head_dim = 32});
  check_output(c, variant_of(c, "tile-swizzled", {"= k,", "by = 8", "rows = 4", "every = 1"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) { return f.k(j, d ^ j % 4 * 8); });
               });
  check_output(c, variant_of(c, "tile-swizzled", {"= k,", "by = 4", "rows = 2", "every = 2"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) { return f.k(j, d ^ j / 2 % 2 * 4); });
               });
}

TEST_CASE("stale-tile: another tile of the loop stands for every one") {
  const testing::Case c = make_case({});
  check_output(
      c, variant_of(c, "stale-tile", {"operand = k,", "tile = the first,", "all keys"}),
      [](const Formula& f) { return with_k(f, [&](int j, int d) { return f.k(j % 16, d); }); });
  check_output(c, variant_of(c, "stale-tile", {"operand = v,", "number ^ 1", "all keys"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return f.v(j < 32 ? j ^ 16 : j, d); });
               });
  const testing::Case split = make_case({.seqlen_k = 64, .splits = 2});
  check_output(split, variant_of(split, "stale-tile", {"= v,", "tile = the last,", "loop"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return f.v(j / 32 * 32 + 16 + j % 16, d); });
               });
}

TEST_CASE("stale-tile: one tile of the loop alone") {
  const testing::Case c = make_case({});
  check_output(c, variant_of(c, "stale-tile", {"operand = v,", "for the last", "all keys"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return f.v(j < 32 ? j : j - 16, d); });
               });
  check_output(c, variant_of(c, "stale-tile", {"operand = k,", "for the second", "all keys"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) { return f.k(j / 16 == 1 ? j - 16 : j, d); });
               });
}

TEST_CASE("tile-step: tiles begin at multiples of another number") {
  const testing::Case c = make_case({.block_m = 8});
  check_output(c, variant_of(c, "tile-step", {"operand = v", "rows = 8)"}), [](const Formula& f) {
    return with_v(f, [&](int j, int d) { return f.v(j / 16 * 8 + j % 16, d); });
  });
}

TEST_CASE("tile-partly-loaded: of every few rows, and stale ones") {
  const testing::Case c = make_case({});
  check_output(c, variant_of(c, "tile-partly-loaded", {"operand = v", "rows = 3", "of = 4"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return j % 4 < 3 ? f.v(j, d) : 0; });
               });
  check_output(c, variant_of(c, "tile-partly-loaded", {"= k,", "rows = 12", "tile before)"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) {
                   if (j % 16 < 12) return f.k(j, d);
                   return j >= 16 ? f.k(j - 16, d) : 0;
                 });
               });
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

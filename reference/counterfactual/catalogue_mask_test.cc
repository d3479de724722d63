// Masks, empty rows, padding: each hypothesis against its formula, spelled out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};
const Mask kBottomRight{MaskKind::kCausal, CausalAlignment::kBottomRight, 0, 0};
const Mask kWindow{MaskKind::kWindow, CausalAlignment::kTopLeft, 9, 4};

// softmax over the keys that `keep` keeps.
Vec attend_to(const Formula& f, const std::function<bool(int j)>& keep) {
  Vec s;
  for (int j = 0; j < f.keys(); ++j)
    s.push_back(keep(j) ? f.scale() * f.dot(f.row.query, j) : -kInf);
  if (largest(s) == -kInf) return Vec(static_cast<std::size_t>(f.c.problem.head_dim_v), 0.0);
  return f.attend(s);
}

// Whether the query tile of the row visits the key's tile: some row of it sees a key of the tile.
bool tile_seen(const Formula& f, int j) {
  const int first = f.row.query / f.block_m() * f.block_m();
  for (int i = first; i < std::min(first + f.block_m(), f.c.problem.seqlen_q); ++i)
    for (int other = f.tile_of(j) * f.block_n();
         other < std::min((f.tile_of(j) + 1) * f.block_n(), f.keys()); ++other)
      if (f.sees(i, other)) return true;
  return false;
}

TEST_CASE("mask-missing: every key, or every key of the tiles that are visited") {
  const testing::Case c = make_case({.block_m = 8, .mask = kCausal});
  check_output(c, variant_of(c, "mask-missing", {"all tiles"}),
               [](const Formula& f) { return attend_to(f, [](int) { return true; }); });
  check_output(c, variant_of(c, "mask-missing", {"visible"}), [](const Formula& f) {
    return attend_to(f, [&](int j) { return tile_seen(f, j); });
  });
}

TEST_CASE("mask-shift: the ends of what a row sees move") {
  const testing::Case c = make_case({.mask = kWindow});
  check_output(c, variant_of(c, "mask-shift", {"last = 1,", "all tiles"}), [](const Formula& f) {
    const int i = f.row.query;
    return attend_to(f, [&](int j) { return j >= i - 9 && j <= i + 5; });
  });
  check_output(c, variant_of(c, "mask-shift", {"first = -2,", "all tiles"}), [](const Formula& f) {
    const int i = f.row.query;
    return attend_to(f, [&](int j) { return j >= i - 11 && j <= i + 4; });
  });
  check_output(c, variant_of(c, "mask-shift", {"last = 2,", "visible"}), [](const Formula& f) {
    const int i = f.row.query;
    return attend_to(f, [&](int j) { return j >= i - 9 && j <= i + 6 && tile_seen(f, j); });
  });
}

TEST_CASE("mask-shift: by a tile") {
  const testing::Case c = make_case({.block_m = 8, .mask = kWindow});
  check_output(c, variant_of(c, "mask-shift", {"last = 16,", "all tiles"}), [](const Formula& f) {
    const int i = f.row.query;
    return attend_to(f, [&](int j) { return j >= i - 9 && j <= i + 20; });
  });
}
TEST_CASE("mask-index-in-tile: numbers within the tile for those within the sequence") {
  const testing::Case c = make_case({.block_m = 8, .mask = kWindow});
  const auto sees = [](int i, int j) { return j >= i - 9 && j <= i + 4; };
  check_output(c, variant_of(c, "mask-index-in-tile", {"of the query", "all tiles"}),
               [&](const Formula& f) {
                 return attend_to(f, [&](int j) { return sees(f.row.query % 8, j); });
               });
  check_output(c, variant_of(c, "mask-index-in-tile", {"packed", "all tiles"}),
               [&](const Formula& f) {
                 const int row = f.row.query * 2 + f.row.head % 2;
                 return attend_to(f, [&](int j) { return sees(row, j); });
               });
  check_output(c, variant_of(c, "mask-index-in-tile", {"of both", "all tiles"}),
               [&](const Formula& f) {
                 return attend_to(f, [&](int j) { return sees(f.row.query % 8, j % 16); });
               });
  check_output(
      c, variant_of(c, "mask-index-in-tile", {"of the key", "visible"}), [&](const Formula& f) {
        return attend_to(f, [&](int j) { return sees(f.row.query, j % 16) && tile_seen(f, j); });
      });
}
TEST_CASE("mask-shift: a window without an end, or with its ends exchanged") {
  const testing::Case c = make_case({.mask = kWindow});
  check_output(c, variant_of(c, "mask-shift", {"first = none", "all tiles"}), [](const Formula& f) {
    return attend_to(f, [&](int j) { return j <= f.row.query + 4; });
  });
  check_output(c, variant_of(c, "mask-shift", {"first = none", "visible"}), [](const Formula& f) {
    return attend_to(f, [&](int j) { return j <= f.row.query + 4 && tile_seen(f, j); });
  });
  check_output(c, variant_of(c, "mask-shift", {"last = none", "all tiles"}), [](const Formula& f) {
    return attend_to(f, [&](int j) { return j >= f.row.query - 9; });
  });
  check_output(c, variant_of(c, "mask-shift", {"the reverse", "all tiles"}), [](const Formula& f) {
    const int i = f.row.query;
    return attend_to(f, [&](int j) { return j >= i - 4 && j <= i + 9; });
  });
}

TEST_CASE("mask-shift: an end of a window is taken for the other, or for 0") {
  const Mask wide{MaskKind::kWindow, CausalAlignment::kTopLeft, 12, 5};
  const testing::Case c = make_case({.mask = wide});
  const auto check = [&](const char* end, int left, int right) {
    check_output(c, variant_of(c, "mask-shift", {end, "all tiles"}), [&](const Formula& f) {
      const int i = f.row.query;
      return attend_to(f, [&](int j) { return j >= i - left && j <= i + right; });
    });
  };
  check("last = that of window_left, loop", 12, 12);
  check("last = the query", 12, 0);
  check("first = that of window_right", 5, 5);
  check("first = the query", 0, 5);
}

TEST_CASE("tiles that every split's loop leaves out, keys that no lane has") {
  const testing::Case c = make_case({.block_n = 8, .splits = 2, .mask = kCausal});
  // Five tiles: three and two.
  const auto check = [&](const Variant& variant,
                         const std::function<bool(const Formula& f, int j)>& counts) {
    check_output(c, variant, [&](const Formula& f) {
      return attend_to(f, [&](int j) { return f.sees(f.row.query, j) && counts(f, j); });
    });
  };
  check(variant_of(c, "first-tile-left-out"),
        [](const Formula&, int j) { return j / 8 != 0 && j / 8 != 3; });
  check(variant_of(c, "last-tile-left-out", {"every split", "all tiles"}),
        [](const Formula&, int j) { return j / 8 != 2 && j / 8 != 4; });
  check(variant_of(c, "last-tile-left-out", {"every split", "visible"}),
        [](const Formula& f, int j) {
          const int last = std::min(f.row.query / 16 * 16 + 15, 39) / 8;
          return j / 8 != std::min(2, last) && j / 8 != last;
        });
  check(variant_of(c, "keys-unowned", {"counted = 6"}),
        [](const Formula&, int j) { return j % 8 < 6; });
}

TEST_CASE("mask-alignment: the offset of the other alignment") {
  const testing::Case c = make_case({.seqlen_q = 28, .mask = kBottomRight});
  check_output(c, variant_of(c, "mask-alignment", {"all tiles"}), [](const Formula& f) {
    return attend_to(f, [&](int j) { return j <= f.row.query; });
  });
}

TEST_CASE("mask-inverted and masked-score-zero: what is hidden counts") {
  const testing::Case c = make_case({.mask = kCausal});
  check_output(c, variant_of(c, "mask-inverted", {"hidden", "all tiles"}), [](const Formula& f) {
    return attend_to(f, [&](int j) { return j > f.row.query; });
  });
  check_output(c, variant_of(c, "mask-inverted", {"seen too", "all tiles"}), [](const Formula& f) {
    return attend_to(f, [&](int j) { return j >= f.row.query; });
  });
  check_output(c, variant_of(c, "masked-score-zero", {"all tiles"}), [](const Formula& f) {
    Vec s = f.scores();
    for (double& x : s)
      if (x == -kInf) x = 0;
    return f.attend(s);
  });
}

TEST_CASE("tiles without their mask") {
  const testing::Case c = make_case({.block_m = 32, .block_n = 8, .mask = kCausal});
  check_output(c, variant_of(c, "mask-on-last-tile-only", {"visible"}), [](const Formula& f) {
    int last = 0;
    for (int j = 0; j < f.keys(); ++j)
      if (tile_seen(f, j)) last = f.tile_of(j);
    return attend_to(f, [&](int j) {
      return f.tile_of(j) < last || (f.tile_of(j) == last && f.sees(f.row.query, j));
    });
  });
  check_output(c, variant_of(c, "mask-missing-on-diagonal-tile", {"all tiles"}),
               [](const Formula& f) {
                 const int last_row = std::min(f.row.query / 32 * 32 + 31, 39);
                 return attend_to(f, [&](int j) {
                   const bool unmasked = (f.tile_of(j) + 1) * 8 <= last_row + 1;
                   return unmasked || f.sees(f.row.query, j);
                 });
               });
}

TEST_CASE("loops over KV tiles that end too early or begin too late") {
  const testing::Case causal = make_case({.block_m = 32, .block_n = 8, .mask = kCausal});
  check_output(causal, variant_of(causal, "causal-bound-too-small", {"first row's last key)"}),
               [](const Formula& f) {
                 const int first_row = f.row.query / 32 * 32;
                 return attend_to(f, [&](int j) {
                   return f.sees(f.row.query, j) && f.tile_of(j) <= f.tile_of(first_row);
                 });
               });
  check_output(causal, variant_of(causal, "causal-bound-too-small", {"tile's number"}),
               [](const Formula& f) {
                 return attend_to(f, [&](int j) {
                   return f.sees(f.row.query, j) && f.tile_of(j) <= f.row.query / 32;
                 });
               });
  const auto last_tile = [](const Formula& f) {
    return f.tile_of(std::min(f.row.query / 32 * 32 + 31, 39));
  };
  check_output(causal, variant_of(causal, "last-tile-left-out"), [&](const Formula& f) {
    return attend_to(f,
                     [&](int j) { return f.sees(f.row.query, j) && f.tile_of(j) < last_tile(f); });
  });
  const testing::Case window = make_case({.block_m = 16, .block_n = 8, .mask = kWindow});
  check_output(
      window, variant_of(window, "window-begins-late", {"last row's"}), [](const Formula& f) {
        const int last_row = std::min(f.row.query / 16 * 16 + 15, 39);
        return attend_to(f, [&](int j) {
          return f.sees(f.row.query, j) && f.tile_of(j) >= f.tile_of(std::max(0, last_row - 9));
        });
      });
  const testing::Case tail = make_case({.seqlen_k = 37});
  check_output(tail, variant_of(tail, "tail-tile-dropped"),
               [](const Formula& f) { return attend_to(f, [](int j) { return j < 32; }); });
}

TEST_CASE("padding-counted: zeros weigh e^-m, stale keys what they are") {
  const testing::Case c = make_case({.seqlen_k = 37});
  check_output(c, variant_of(c, "padding-counted", {"zeros)"}), [](const Formula& f) {
    const Vec s = f.scores();
    const double m = largest(s);
    const Vec p = exps(s, m);
    return times(1 / (total(p) + 11 * std::exp(-m)), f.weighted(p));
  });
  check_output(c, variant_of(c, "padding-counted", {"tile before)"}), [](const Formula& f) {
    Vec s = f.scores();
    for (int j = 37; j < 48; ++j) s.push_back(f.scale() * f.dot(f.row.query, j - 16));
    return f.attend(s, [&](int j, int d) { return f.v(j < 37 ? j : j - 16, d); });
  });
}

TEST_CASE("padding-counted: as far as a band reaches that is meant for every key") {
  const testing::Case c = make_case({.seqlen_k = 37});
  const auto check = [&](const char* up_to, const std::function<int(int query)>& counted) {
    check_output(c, variant_of(c, "padding-counted", {"zeros", up_to}), [&](const Formula& f) {
      const Part all = part_of(f, f.row.query, 0, 37);
      return times(1 / (all.l + std::min(11, counted(f.row.query)) * std::exp(-all.m)), all.a);
    });
  };
  check("query + seqlen_k)", [](int query) { return query + 1; });
  check("query + seqlen_k - 1)", [](int query) { return query; });
  check_output(c, variant_of(c, "padding-counted", {"tile before", "query + seqlen_k)"}),
               [](const Formula& f) {
                 Vec s = f.scores();
                 for (int j = 37; j < std::min(48, 38 + f.row.query); ++j)
                   s.push_back(f.scale() * f.dot(f.row.query, j - 16));
                 return f.attend(s, [&](int j, int d) { return f.v(j < 37 ? j : j - 16, d); });
               });
}

TEST_CASE("boundary-key-twice: the first keys of later tiles have twice the weight") {
  const testing::Case c = make_case({.mask = kCausal});
  check_output(c, variant_of(c, "boundary-key-twice"), [](const Formula& f) {
    const Vec s = f.scores();
    Vec p = exps(s, largest(s));
    for (std::size_t j = 16; j < p.size(); j += 16) p[j] *= 2;
    return times(1 / total(p), f.weighted(p));
  });
}

TEST_CASE("boundary-key-twice: the first key of the next split") {
  const testing::Case c = make_case({.seqlen_k = 45, .block_n = 8, .splits = 2});
  check_output(c, variant_of(c, "boundary-key-twice", {"every split"}), [](const Formula& f) {
    const Vec s = f.scores();
    Vec p = exps(s, largest(s));
    p[24] *= 2;  // six tiles, three of them in the first split
    return times(1 / total(p), f.weighted(p));
  });
}

TEST_CASE("rows that see no key") {
  const testing::Case c = make_case({.seqlen_q = 40, .seqlen_k = 25, .mask = kBottomRight});
  const auto mean = [](const Formula& f, double n) {
    return times(1 / n, f.weighted(Vec(25, 1.0)));
  };
  check_output(
      c, variant_of(c, "empty-row-mean", {"over = keys,", "all tiles"}),
      [&](const Formula& f) { return f.row.query < 15 ? mean(f, 25) : f.attend(f.scores()); });
  check_output(c, variant_of(c, "empty-row-mean", {"padding", "all tiles"}), [&](const Formula& f) {
    return f.row.query < 15 ? mean(f, 32) : f.attend(f.scores());
  });
  for (const std::int32_t query : {0, 14, 15, 30}) {
    const Predicted is =
        predicted(c, {0, 0, query}, variant_of(c, "empty-row-nan", {"all tiles"}).deviation);
    CHECK(std::isnan(is.o[0]) == (query < 15));
    CHECK(std::isnan(is.o[0]) != std::isfinite(is.o[0]));
    const Predicted divided =
        predicted(c, {0, 0, query}, variant_of(c, "empty-row-divided", {"= the row)"}).deviation);
    CHECK(std::isnan(divided.o[0]) == (query < 15));
    CHECK(divided.lse == predicted(c, {0, 0, query}, {}).lse);  // -inf
  }
}

TEST_CASE("empty-row-divided: a split that a row sees nothing of is 0 / 0 too") {
  const testing::Case c =
      make_case({.block_n = 8, .splits = 2, .mask = {MaskKind::kCausal, {}, 0, 0}});
  for (const std::int32_t query : {0, 23, 24, 39}) {
    const Predicted is =
        predicted(c, {0, 1, query}, variant_of(c, "empty-row-divided", {"split"}).deviation);
    CHECK(std::isnan(is.o[0]) == (query < 24));  // 3 tiles of 8 keys are in the first split
    CHECK(is.lse == predicted(c, {0, 1, query}, {}).lse);
  }
}

}  // namespace
}  // namespace attn_diag::reference

// Finite masks, masks of runs, tiles that are left out, masked or counted otherwise: each hypothesis
// against its formula, spelled out.
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "reference/counterfactual/testing/formula.h"
#include "reference/counterfactual/testing/rows.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};
const Mask kBottomRight{MaskKind::kCausal, CausalAlignment::kBottomRight, 0, 0};
const Mask kWindow{MaskKind::kWindow, CausalAlignment::kTopLeft, 9, 4};

// softmax over the keys that `keep` keeps.
Vec attend_to(const Formula& f, const std::function<bool(int j)>& keep) {
  Vec s;
  for (int j = 0; j < f.keys(); ++j)
    s.push_back(keep(j) ? f.scale() * f.dot(f.row.query, j) : -INFINITY);
  if (largest(s) == -INFINITY) return Vec(16, 0.0);
  return f.attend(s);
}

TEST_CASE("masked-score-finite: what should be -inf is a number, or off by one") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto with = [](const Formula& f, const std::function<double(double s)>& hidden) {
    Vec s;
    for (int j = 0; j < 40; ++j) {
      const double score = f.scale() * f.dot(f.row.query, j);
      s.push_back(j <= f.row.query ? score : hidden(score));
    }
    return f.attend(s);
  };
  check_output(c, variant_of(c, "masked-score-finite", {"of = 0,", "all tiles"}).at(2),
               [&](const Formula& f) { return with(f, [](double) { return -2; }); });
  check_output(c, variant_of(c, "masked-score-finite", {"of = the score,", "all tiles"}).at(3),
               [&](const Formula& f) { return with(f, [](double s) { return s - 3; }); });
}

TEST_CASE("mask-of-runs: whole runs of keys, or the mask of another query") {
  const testing::Case c = make_case({.mask = kWindow});
  const auto check = [&](const char* of, const char* run,
                         const std::function<bool(int i, int j)>& sees) {
    check_output(c, variant_of(c, "mask-of-runs", {of, run, "all tiles"}), [&](const Formula& f) {
      return attend_to(f, [&](int j) { return sees(f.row.query, j); });
    });
  };
  const auto down = [](int x, int run) { return (x + 8 * run) / run * run - 8 * run; };
  check("all seen with the last", "keys = 16,",
        [&](int i, int j) { return j >= i - 9 && j <= down(i + 4, 16) + 15; });
  check("not seen with the last", "keys = 8,",
        [&](int i, int j) { return j >= i - 9 && j < down(i + 4, 8); });
  check("all seen with the first", "keys = 8,",
        [&](int i, int j) { return j >= down(i - 9, 8) && j <= i + 4; });
  check("not seen with the first", "keys = 4,",
        [&](int i, int j) { return j >= -down(9 - i, 4) && j <= i + 4; });
  check("that of the first", "queries = 16,",
        [&](int i, int j) { return j >= down(i, 16) - 9 && j <= down(i, 16) + 4; });
  check("that of the last", "queries = 4,",
        [&](int i, int j) { return j >= down(i, 4) + 3 - 9 && j <= down(i, 4) + 3 + 4; });
}

TEST_CASE("mask-on-some-tiles: the others show all their keys") {
  const testing::Case c = make_case({.block_m = 8, .mask = kCausal});
  const auto check = [&](const char* tiles, const char* loop,
                         const std::function<bool(const Formula&, int tile)>& visits,
                         const std::function<bool(const Formula&, int tile)>& masks) {
    check_output(c, variant_of(c, "mask-on-some-tiles", {tiles, loop}), [&](const Formula& f) {
      return attend_to(f, [&](int j) {
        const int tile = f.tile_of(j);
        return visits(f, tile) && (!masks(f, tile) || j <= f.row.query);
      });
    });
  };
  const auto all = [](const Formula&, int) { return true; };
  const auto bounded = [](const Formula& f, int t) {
    return t <= f.tile_of(f.row.query / 8 * 8 + 7);
  };
  const auto last = [](const Formula& f) {
    return f.tile_of(std::min(f.row.query / 8 * 8 + 7, 39));
  };
  check("all but the last,", "visible", bounded,
        [&](const Formula& f, int t) { return t != last(f); });
  check("= the first,", "all tiles", all, [](const Formula&, int t) { return t == 0; });
  check("all but the first,", "visible", bounded, [](const Formula&, int t) { return t != 0; });
  check("query tile's number,", "visible", bounded,
        [](const Formula& f, int t) { return t == f.row.query / 8; });
  check("the last of the sequence,", "visible", bounded,
        [](const Formula&, int t) { return t == 2; });
}

TEST_CASE("mask-on-some-tiles: as many as fit a smaller query tile") {
  // The diagonal crosses four KV tiles of a query tile.
  const testing::Case c =
      make_case({.seqlen_q = 64, .seqlen_k = 64, .block_m = 32, .block_n = 8, .mask = kCausal});
  const auto last = [](const Formula& f) { return f.row.query < 32 ? 3 : 7; };
  const auto check = [&](const testing::Case& of, const char* tiles, const char* loop,
                         const std::function<bool(const Formula&, int tile)>& bare) {
    check_output(of, variant_of(of, "mask-on-some-tiles", {tiles, loop}), [&](const Formula& f) {
      return attend_to(f, [&](int j) {
        const int t = f.tile_of(j);
        const bool visits = std::string(loop) != "visible" || t <= last(f);
        return visits && (bare(f, t) || j <= f.row.query);
      });
    });
  };
  for (const int n : {2, 3})
    check(c, ("= the last " + std::to_string(n) + ",").c_str(), "visible",
          [&](const Formula& f, int t) { return t <= last(f) - n; });
  check(c, "= the last 4,", "all tiles", [](const Formula&, int t) { return t < 4; });
  check(c, "all but the last 2,", "visible",
        [&](const Formula& f, int t) { return t > last(f) - 2; });
  check(c, "the first 2,", "visible", [](const Formula&, int t) { return t >= 2; });
  const testing::Case split = make_case(
      {.seqlen_q = 64, .seqlen_k = 64, .block_m = 32, .block_n = 8, .splits = 4, .mask = kCausal});
  check(split, "= the last 2 of all splits,", "visible",
        [&](const Formula& f, int t) { return t <= last(f) - 2; });
  // Four are all that the diagonal crosses.
  CHECK_THROWS_AS(variant_of(c, "mask-on-some-tiles", {"= the last 4,", "visible"}),
                  std::logic_error);
}

TEST_CASE("mask-of-element: indices of another element of the fragment are compared") {
  const testing::Case c = make_case({.seqlen_k = 48, .mask = kCausal});
  const auto check = [&](const char* elements, const char* loop,
                         const std::function<std::pair<int, int>(int r, int k)>& place) {
    check_output(c, variant_of(c, "mask-of-element", {elements, loop}), [&](const Formula& f) {
      const int r = f.row.query % 16, first_row = f.row.query - r;
      return attend_to(f, [&](int j) {
        const bool visits = std::string(loop) == "all tiles" || j < first_row + 16;
        const auto [row, column] = place(r, j % 16);
        return visits && j - j % 16 + column <= first_row + row;
      });
    });
  };
  const auto element = [](int r, int k) { return 4 * (k / 8) + 2 * (r / 8) + k % 2; };
  check("of a lane, loop", "visible", [&](int r, int k) { return std::pair{0, element(r, k)}; });
  check("of a lane, loop", "all tiles", [&](int r, int k) { return std::pair{0, element(r, k)}; });
  check("= those of lane 0,", "all tiles", [](int r, int k) {
    return std::pair{r / 8 * 8, k / 8 * 8 + k % 2};
  });
  check("the columns of lane 0,", "visible", [](int r, int k) {
    return std::pair{r, k / 8 * 8 + k % 2};
  });
  check("= transposed,", "all tiles", [](int r, int k) { return std::pair{k, r}; });
  const testing::Case window = make_case({.mask = kWindow});
  check_output(window, variant_of(window, "mask-of-element", {"of 16x8,", "all tiles"}),
               [&](const Formula& f) {
                 const int r = f.row.query % 16, first = f.row.query - r;
                 return attend_to(f, [&](int j) {
                   const int at = j / 8 * 8 + element(r, j % 8);
                   return at >= first - 9 && at <= first + 4;
                 });
               });
}

TEST_CASE("keys-cut: the first or the last keys do not count") {
  const testing::Case c = make_case({.seqlen_k = 37});
  check_output(c, variant_of(c, "keys-cut", {"keys = 1,", "end"}),
               [](const Formula& f) { return attend_to(f, [](int j) { return j < 36; }); });
  check_output(c, variant_of(c, "keys-cut", {"keys = 5,", "end"}),
               [](const Formula& f) { return attend_to(f, [](int j) { return j < 32; }); });
  check_output(c, variant_of(c, "keys-cut", {"keys = 2,", "beginning"}),
               [](const Formula& f) { return attend_to(f, [](int j) { return j >= 2; }); });
  check_output(c, variant_of(c, "keys-unowned", {"from = 1)"}),
               [](const Formula& f) { return attend_to(f, [](int j) { return j % 16 >= 1; }); });
}

TEST_CASE("tile-twice: a tile of the loop weighs twice as much") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto weighed = [](const Formula& f, const std::function<bool(int j)>& twice) {
    const Vec s = f.scores();
    Vec p = exps(s, largest(s));
    for (std::size_t j = 0; j < p.size(); ++j) p[j] *= twice(static_cast<int>(j)) ? 2 : 1;
    return times(1 / total(p), f.weighted(p));
  };
  check_output(c, variant_of(c, "tile-twice", {"the first", "all tiles"}),
               [&](const Formula& f) { return weighed(f, [](int j) { return j < 16; }); });
  check_output(c, variant_of(c, "tile-twice", {"the last", "visible"}), [&](const Formula& f) {
    return weighed(f, [&](int j) { return f.tile_of(j) == f.tile_of(f.row.query); });
  });
  const testing::Case split = make_case({.seqlen_k = 64, .splits = 2});
  check_output(split, variant_of(split, "tile-twice", {"the first"}),
               [&](const Formula& f) { return weighed(f, [](int j) { return j % 32 < 16; }); });
}

TEST_CASE("causal-bound-too-small: the loop's end forgets seqlen_k - seqlen_q") {
  const testing::Case c =
      make_case({.seqlen_q = 32, .seqlen_k = 56, .block_m = 8, .block_n = 8, .mask = kBottomRight});
  check_output(c, variant_of(c, "causal-bound-too-small", {"visible key", "keys less = 24)"}),
               [](const Formula& f) {
                 const int last = f.row.query / 8 * 8 + 7;
                 return attend_to(f, [&](int j) {
                   return j <= f.row.query + 24 && f.tile_of(j) <= f.tile_of(last);
                 });
               });
}

TEST_CASE("padding-counted: the last key again, the first keys, what is there; some of them") {
  const testing::Case c = make_case({.seqlen_k = 37});
  const auto check = [&](const char* words, int padded, const std::function<int(int j)>& key) {
    check_output(c, variant_of(c, "padding-counted", {words}), [&](const Formula& f) {
      Vec s = f.scores();
      for (int j = 37; j < 37 + padded; ++j) s.push_back(f.scale() * f.dot(f.row.query, key(j)));
      return f.attend(s, [&](int j, int d) { return f.v(j < 37 ? j : key(j), d); });
    });
  };
  check("= the last key)", 11, [](int) { return 36; });
  check("= the first keys)", 11, [](int j) { return j - 37; });
  check("= the last key, keys = 1)", 1, [](int) { return 36; });
  check("= keys of the tile before, keys = 3)", 3, [](int j) { return j - 16; });
}

TEST_CASE("lse-form: of rows that see no key") {
  const testing::Case c = make_case({.seqlen_k = 24, .mask = kBottomRight});
  const auto lse = [&](const char* form, int query) {
    return predicted(c, {0, 0, query}, variant_of(c, "lse-form", {form}).deviation).lse;
  };
  CHECK(lse("+inf where", 3) == INFINITY);
  CHECK(lse("0 where", 3) == 0);
  CHECK(std::isnan(lse("NaN where", 3)));
  CHECK(lse("+inf where", 30) == predicted(c, {0, 0, 30}, {}).lse);
}

TEST_CASE("query tiles and rows that nobody has") {
  const testing::Case c = make_case({});
  check_output(c, variant_of(c, "last-query-tile-left-out", {"zero"}), [](const Formula& f) {
    return f.row.query < 32 ? f.attend(f.scores()) : Vec(16, 0.0);
  });
  check_output(
      c, variant_of(c, "rows-unowned", {"owned = 3, of = 4, others = zero"}),
      [](const Formula& f) { return f.row.query % 4 < 3 ? f.attend(f.scores()) : Vec(16, 0.0); });
  const Variant stale =
      variant_of(c, "rows-unowned", {"owned = 3, of = 4, others = those of the row before"});
  const auto left = [](const Formula& f) {
    return RowIndex{f.row.batch, f.row.head, f.row.query - (f.row.query % 4 == 3 ? 1 : 0)};
  };
  check_output(c, stale, [&](const Formula& f) {
    return Formula{f.c, left(f)}.attend(f.scores(left(f).query));
  });
  check_lse(c, stale, [&](const Formula& f) {
    const Vec s = f.scores(left(f).query);
    return largest(s) + std::log(total(exps(s, largest(s))));
  });
  check_output(c, variant_of(c, "rows-unowned", {"not from = 4,", "rows = 4,", "zero"}),
               [](const Formula& f) {
                 return f.row.query % 16 / 4 != 1 ? f.attend(f.scores()) : Vec(16, 0.0);
               });
  check_output(
      c, variant_of(c, "rows-unowned", {"owned = 7, of = 8, not from = 0, others = zero"}),
      [](const Formula& f) { return f.row.query % 8 != 0 ? f.attend(f.scores()) : Vec(16, 0.0); });
}

}  // namespace
}  // namespace attn_diag::reference

// What the merge of splits reads, and what it counts besides: each hypothesis against its formula.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

// A split's partial: three splits of one tile.
struct At {
  int batch, head, query, split;
};
Part partial(const Formula& f, const At& at) {
  return tile(Formula{f.c, {at.batch, at.head, at.query}}, at.split);
}

// The merge of three splits whose m and l are read from `of_l`, and A from `of_o`.
Vec merged_from(const Formula& f, const std::function<At(int n)>& of_l,
                const std::function<At(int n)>& of_o) {
  double m = -kInf, l = 0;
  Vec o(16, 0.0);
  for (int n = 0; n < 3; ++n) m = std::max(m, partial(f, of_l(n)).m);
  for (int n = 0; n < 3; ++n) {
    const Part sums = partial(f, of_l(n));
    l += factor(sums.m, m) * sums.l;
    o = plus(o, times(factor(sums.m, m), partial(f, of_o(n)).a));
  }
  return times(1 / l, o);
}

TEST_CASE("partials written in one order of axes and read in another") {
  const testing::Case c = make_case({.splits = 3});
  const auto check = [&](const char* read, const char* written,
                         const std::function<At(const RowIndex& row, int n)>& at) {
    const std::string from = std::string("in ") + read + ", written in " + written;
    const auto own = [](const RowIndex& row, int n) {
      return At{row.batch, row.head, row.query, n};
    };
    const auto of = [&](const auto& place, const Formula& f) {
      return [&, place](int n) { return place(f.row, n); };
    };
    check_output(c, variant_of(c, "partial-of-another", {from, "m, l and o"}),
                 [&](const Formula& f) { return merged_from(f, of(at, f), of(at, f)); });
    check_output(c, variant_of(c, "partial-of-another", {from, "of = o"}),
                 [&](const Formula& f) { return merged_from(f, of(own, f), of(at, f)); });
    check_output(c, variant_of(c, "partial-of-another", {from, "of = m and l"}),
                 [&](const Formula& f) { return merged_from(f, of(at, f), of(own, f)); });
  };
  // 40 queries, 3 splits, 4 heads, 2 batches.
  check("[b][h][n][q]", "[b][h][q][n]", [](const RowIndex& row, int n) {
    const int at = n * 40 + row.query;
    return At{row.batch, row.head, at / 3, at % 3};
  });
  check("[b][h][q][n]", "[b][h][n][q]", [](const RowIndex& row, int n) {
    const int at = row.query * 3 + n;
    return At{row.batch, row.head, at % 40, at / 40};
  });
  check("[b][h][q][n]", "[b][n][h][q]", [](const RowIndex& row, int n) {
    const int at = (row.head * 40 + row.query) * 3 + n;
    return At{row.batch, at / 40 % 4, at % 40, at / 160};
  });
  check("[n][b][h][q]", "[b][h][q][n]", [](const RowIndex& row, int n) {
    const int at = ((n * 2 + row.batch) * 4 + row.head) * 40 + row.query;
    return At{at / 480, at / 120 % 4, at / 3 % 40, at % 3};
  });
}

TEST_CASE("the partials of the next head, batch or split: of o, or of m and l") {
  const testing::Case c = make_case({.splits = 3});
  const auto check = [&](const char* from, const char* of_what,
                         const std::function<At(const RowIndex& row, int n)>& of_l,
                         const std::function<At(const RowIndex& row, int n)>& of_o) {
    check_output(c, variant_of(c, "partial-of-another", {from, of_what}), [&](const Formula& f) {
      return merged_from(
          f, [&](int n) { return of_l(f.row, n); }, [&](int n) { return of_o(f.row, n); });
    });
  };
  const auto own = [](const RowIndex& row, int n) { return At{row.batch, row.head, row.query, n}; };
  const auto head = [](const RowIndex& row, int n) {
    return At{row.batch, (row.head + 1) % 4, row.query, n};
  };
  check("next head", "m, l and o", head, head);
  check("next head", "of = m and l", head, own);
  const auto batch = [](const RowIndex& row, int n) {
    return At{1 - row.batch, row.head, row.query, n};
  };
  check("next batch", "of = o", own, batch);
  const auto split = [](const RowIndex& row, int n) {
    return At{row.batch, row.head, row.query, (n + 1) % 3};
  };
  check("next split", "of = m and l", split, own);
}

TEST_CASE("the partials of query 0, or of the query tile's first row") {
  const testing::Case c = make_case({.splits = 3});
  check_output(c, variant_of(c, "partial-of-another", {"query 0", "m, l and o"}),
               [](const Formula& f) {
                 const Formula first{f.c, {f.row.batch, f.row.head, 0}};
                 return first.attend(first.scores());
               });
  check_output(c, variant_of(c, "partial-of-another", {"first row", "m, l and o"}),
               [](const Formula& f) {
                 const Formula first{f.c, {f.row.batch, f.row.head, f.row.query / 16 * 16}};
                 return first.attend(first.scores());
               });
}

TEST_CASE("empty-split-merged: splits without keys weigh e^lse each") {
  const testing::Case c = make_case({.splits = 3, .mask = kCausal});
  // Split n is the tile of keys from 16 n.
  const auto empty = [](const Formula& f) {
    return f.row.query < 16 ? 2 : f.row.query < 32 ? 1 : 0;
  };
  for (const double lse : {1.0, 0.3}) {
    const Variant variant =
        lse == 1 ? variant_of(c, "empty-split-merged", {"without keys", "lse = 1"})
                 : variant_of(c, "empty-split-merged", {"without keys", "?"}).at(lse);
    check_output(c, variant, [&](const Formula& f) {
      const Part all = part_of(f, f.row.query, 0, 40);
      return times(1 / (all.l + empty(f) * std::exp(lse - all.m)), all.a);
    });
    check_lse(c, variant, [&](const Formula& f) {
      const Part all = part_of(f, f.row.query, 0, 40);
      return std::log(std::exp(all.m) * all.l + empty(f) * std::exp(lse));
    });
  }
}

TEST_CASE("a row that sees no key has the lse of what is counted besides, and o = 0") {
  const Mask bottom{MaskKind::kCausal, CausalAlignment::kBottomRight, 0, 0};
  const testing::Case c = make_case({.seqlen_k = 24, .splits = 2, .mask = bottom});
  const auto check = [&](const Variant& variant, double lse) {
    const Predicted is = predicted(c, {0, 0, 3}, variant.deviation);
    CHECK(std::fabs(is.lse - lse) < 1e-12);
    CHECK(is.o == Vec(16, 0.0));
  };
  check(variant_of(c, "empty-split-merged", {"one more", "lse = 1"}), 1);
  check(variant_of(c, "empty-split-merged", {"without keys", "lse = 1"}), 1 + std::log(2.0));
  check(variant_of(c, "sink-counted", {"?"}).at(5), std::log(5.0));
}

TEST_CASE("a sink with every split that has keys for the row") {
  const testing::Case c = make_case({.splits = 3, .mask = kCausal});
  const Variant variant = variant_of(c, "sink-counted", {"every split that has keys"});
  check_output(c, variant, [&](const Formula& f) {
    const Part all = part_of(f, f.row.query, 0, 40);
    const int splits = f.row.query / 16 + 1;
    return times(1 / (all.l + splits * std::exp(-all.m)), all.a);
  });
}

TEST_CASE("a sink with every tile that the loop visits") {
  const testing::Case c = make_case({.splits = 2, .mask = kCausal});
  const auto check = [&](const char* loop, const std::function<int(int query)>& tiles) {
    const Variant variant = variant_of(c, "sink-counted", {"with every tile", loop});
    check_output(c, variant, [&](const Formula& f) {
      const Part all = part_of(f, f.row.query, 0, 40);
      return times(1 / (all.l + tiles(f.row.query) * std::exp(-all.m)), all.a);
    });
    check_lse(c, variant, [&](const Formula& f) {
      const Part all = part_of(f, f.row.query, 0, 40);
      return std::log(std::exp(all.m) * all.l + tiles(f.row.query));
    });
  };
  // Tiles of 16 x 16; split 0 has keys up to 32, and split 1 shows nothing to rows before its own.
  check("all tiles", [](int query) { return query < 32 ? 2 : 3; });
  check("visible key", [](int query) { return query / 16 + 1; });
}

TEST_CASE("what is counted besides the keys") {
  const testing::Case c = make_case({.splits = 3});
  const auto with_more = [](const Formula& f, const std::function<double(double m)>& more) {
    const Part all = part_of(f, f.row.query, 0, 40);
    return times(1 / (all.l + more(all.m)), all.a);
  };
  check_output(
      c, variant_of(c, "empty-split-merged", {"one more", "lse = 0"}),
      [&](const Formula& f) { return with_more(f, [](double m) { return std::exp(-m); }); });
  CHECK(
      predicted(c, {0, 0, 3}, variant_of(c, "empty-split-merged", {"one more", "= inf)"}).deviation)
          .o[0] == 0);
  check_output(c, variant_of(c, "sink-counted", {"n = 2"}), [&](const Formula& f) {
    return with_more(f, [](double m) { return 2 * std::exp(-m); });
  });
  check_lse(c, variant_of(c, "sink-counted", {"?"}).at(2), [&](const Formula& f) {
    const Part all = part_of(f, f.row.query, 0, 40);
    return std::log(std::exp(all.m) * all.l + 2);
  });
  check_output(c, variant_of(c, "l-seeded", {"?"}).at(0.5),
               [&](const Formula& f) { return with_more(f, [](double) { return 0.5; }); });
  // Three splits, each of which has seen a score of 0.
  check_output(c, variant_of(c, "l-seeded", {"begins with = 0"}), [&](const Formula& f) {
    return with_more(f, [](double m) { return 3 * std::exp(-m); });
  });
  check_lse(c, variant_of(c, "l-seeded", {"begins with = 0"}), [&](const Formula& f) {
    const Part all = part_of(f, f.row.query, 0, 40);
    return std::log(std::exp(all.m) * all.l + 3);
  });
}

TEST_CASE("l-seeded: l begins with a number in the frame of the first tile with a key") {
  const testing::Case c =
      make_case({.block_n = 8,
                 .splits = 2,
                 .mask = {MaskKind::kCausal, CausalAlignment::kBottomRight, 0, 0}});
  const auto more = [](const Formula& f) {
    double sum = 0;
    for (const int begin : {0, 24}) {
      double first = -std::numeric_limits<double>::infinity();
      for (int t = begin; t < (begin == 0 ? 24 : 40) && first < -1e300; t += 8)
        first = part_of(f, f.row.query, t, t + 8).m;
      sum += factor(first, 0);
    }
    return sum;
  };
  for (const int n : {1, 4}) {
    const Variant variant =
        variant_of(c, "l-seeded", {"l0 = " + std::to_string(n) + ",", "first tile"});
    check_output(c, variant, [&](const Formula& f) {
      const Vec p = exps(f.scores(), 0);
      return f.weighted(times(1 / (total(p) + n * more(f)), p));
    });
    check_lse(c, variant,
              [&](const Formula& f) { return std::log(total(exps(f.scores(), 0)) + n * more(f)); });
  }
}

}  // namespace
}  // namespace attn_diag::reference

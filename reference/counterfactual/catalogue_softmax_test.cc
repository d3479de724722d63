// Softmax and P V: each hypothesis against its formula, spelled out.
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

double lse(const Formula& f, int i) {
  const Vec s = f.scores(i);
  return largest(s) + std::log(total(exps(s, largest(s))));
}

// The largest score of the keys for which `same` holds.
double max_where(const Vec& s, const std::function<bool(int j)>& same) {
  double m = -kInf;
  for (std::size_t j = 0; j < s.size(); ++j)
    if (same(static_cast<int>(j))) m = std::max(m, s[j]);
  return m;
}

TEST_CASE("max-floor: m is the larger of it, o and lse stay") {
  const testing::Case c = make_case({.mask = kCausal});
  const Variant variant = variant_of(c, "max-floor", {"c = 10", "all tiles"});
  const reference::PredictionInputs data(c.problem, c.geometry, {}, c.inputs());
  const RowIndex row{0, 1, 20};
  Prediction out;
  predict(data, std::span(&row, 1), variant.deviation,
          tensor_bit(Tensor::kM) | tensor_bit(Tensor::kL), out);
  const Formula f{c, row};
  CHECK(out[Tensor::kM].value == Vec{10, 10, 10});
  double l = 0;
  const Vec s = f.scores();
  for (int j = 0; j < 16; ++j) l += std::exp(s[static_cast<std::size_t>(j)] - 10);
  CHECK(std::fabs(out[Tensor::kL].value[0] - l) < 1e-12);
  check_lse(c, variant, [](const Formula& g) { return lse(g, g.row.query); });
  // Splits that visit nothing record nothing.
  const testing::Case split = make_case({.block_n = 8, .splits = 2, .mask = kCausal});
  const reference::PredictionInputs split_data(split.problem, split.geometry, {}, split.inputs());
  for (const char* loop : {"all", "visible"}) {
    const RowIndex early{0, 1, 10};
    predict(split_data, std::span(&early, 1),
            variant_of(split, "max-floor", {"c = 10", loop}).deviation, tensor_bit(Tensor::kM),
            out);
    const double last = std::string(loop) == "all" ? 10 : -kInf;
    CHECK(out[Tensor::kM].value == Vec{10, 10, 10, last, last});
  }
}

double linear_exp(double x) {
  const double y = x / std::log(2.0);
  return x == -kInf ? 0 : std::exp2(std::floor(y)) * (1 + y - std::floor(y));
}

TEST_CASE("exp-linear: 2^n (1 + f)") {
  const testing::Case c = make_case({.block_n = 64, .mask = kCausal});
  check_output(c, variant_of(c, "exp-linear"), [](const Formula& f) {
    const Vec s = f.scores();
    Vec p;
    for (const double x : s) p.push_back(linear_exp(x - largest(s)));
    return times(1 / total(p), f.weighted(p));
  });
}

// sum_j P_j V_j and l, with the exponentials that the deviation has in P, alpha and the merge.
Vec with_exps(const Formula& f, const std::function<double(double)>& of_probs,
              const std::function<double(double)>& of_alpha,
              const std::function<double(double)>& of_merge) {
  const int per_split = f.c.geometry.tiles_per_split;
  Vec a(16, 0.0), split_a;
  double m = -kInf, l = 0, split_m = -kInf, split_l = 0;
  for (int t = 0; t < f.tiles(); ++t) {
    if (t % per_split == 0) split_m = -kInf, split_l = 0, split_a = Vec(16, 0.0);
    Vec s = f.scores();
    for (int j = 0; j < f.keys(); ++j)
      if (f.tile_of(j) != t) s[static_cast<std::size_t>(j)] = -kInf;
    const double before = split_m;
    split_m = std::max(split_m, largest(s));
    if (split_m == -kInf) continue;
    Vec p;
    for (const double x : s) p.push_back(x == -kInf ? 0 : of_probs(x - split_m));
    const double alpha = before == -kInf ? 0 : of_alpha(before - split_m);
    split_l = alpha * split_l + total(p);
    split_a = plus(times(alpha, split_a), f.weighted(p));
    if (t + 1 != f.tiles() && (t + 1) % per_split != 0) continue;
    const double last = m;
    m = std::max(m, split_m);
    // Right for two splits at most.
    const double old = last == -kInf ? 0 : of_merge(last - m), now = of_merge(split_m - m);
    l = old * l + now * split_l;
    a = plus(times(old, a), times(now, split_a));
  }
  a.push_back(m + std::log(l));
  for (std::size_t d = 0; d < 16; ++d) a[d] /= l;
  return a;
}

TEST_CASE("exponentials of another kind, in P, alpha and the merge") {
  const auto right = [](double x) { return std::exp(x); };
  const auto two = [](double x) { return std::exp2(x); };
  const auto check = [&](const testing::Case& c, const Variant& variant, auto probs, auto alpha,
                         auto merge) {
    check_output(c, variant, [&](const Formula& f) {
      Vec o = with_exps(f, probs, alpha, merge);
      o.pop_back();
      return o;
    });
    check_lse(c, variant,
              [&](const Formula& f) { return with_exps(f, probs, alpha, merge).back(); });
  };
  const testing::Case whole = make_case({.block_n = 8, .mask = kCausal});
  const auto base = [&](const testing::Case& c, const char* in) {
    return variant_of(c, "exp-base", {"base = 2,", in});
  };
  check(whole, base(whole, "in = P)"), two, right, right);
  check(whole, base(whole, "in = P and alpha)"), two, two, right);
  check(whole, base(whole, "in = alpha)"), right, two, right);
  check(whole, variant_of(whole, "exp-linear", {"in = P)"}), linear_exp, right, right);
  check(whole, variant_of(whole, "exp-linear", {"P and alpha"}), linear_exp, linear_exp, right);
  const testing::Case split = make_case({.block_n = 8, .splits = 2});
  check(split, base(split, "in = P and alpha)"), two, two, right);
  check(split, base(split, "alpha and the merge"), two, two, two);
  check(split, variant_of(split, "exp-linear", {"in = P and alpha)"}), linear_exp, linear_exp,
        right);
  check(split, variant_of(split, "exp-linear", {"alpha and the merge"}), linear_exp, linear_exp,
        linear_exp);
  check(split, variant_of(split, "exp-linear", {"in = the merge"}), right, right, linear_exp);
}

TEST_CASE("lanes-not-rescaled: sum over lanes of e^(S - m_lane)") {
  const testing::Case c = make_case({.block_n = 64, .mask = kCausal});
  const auto lane_exps = [](const Vec& s, const std::function<int(int j)>& lane) {
    Vec p;
    for (std::size_t j = 0; j < s.size(); ++j) {
      const double m =
          max_where(s, [&](int other) { return lane(other) == lane(static_cast<int>(j)); });
      p.push_back(s[j] == -kInf ? 0 : std::exp(s[j] - m));
    }
    return p;
  };
  const auto modulo = [](int j) { return j % 8; };
  check_output(c,
               variant_of(c, "lanes-not-rescaled", {"j % lanes", "lanes = 8", "tile", "of = l)"}),
               [&](const Formula& f) {
                 const Vec s = f.scores();
                 return times(1 / total(lane_exps(s, modulo)), f.weighted(exps(s, largest(s))));
               });
  check_output(c, variant_of(c, "lanes-not-rescaled", {"j / (", "lanes = 4", "tile", "l and o"}),
               [&](const Formula& f) {
                 const Vec p = lane_exps(f.scores(), [](int j) { return j / 16; });
                 return times(1 / total(p), f.weighted(p));
               });
  const testing::Case tiles = make_case({.mask = kCausal});
  check_output(tiles, variant_of(tiles, "lanes-not-rescaled", {"% 8 / 2", "split", "l and o"}),
               [&](const Formula& f) {
                 const Vec p = lane_exps(f.scores(), [](int j) { return j % 16 % 8 / 2; });
                 return times(1 / total(p), f.weighted(p));
               });
  // Odd tiles and even ones, in one split, and in two of which one has both.
  for (const int splits : {1, 2}) {
    const testing::Case two = make_case({.splits = splits, .mask = kCausal});
    check_output(two, variant_of(two, "lanes-not-rescaled", {"its tile", "lanes = 2", "of = l)"}),
                 [&](const Formula& f) {
                   const Vec s = f.scores();
                   const auto lane = [&](int j) { return f.split_of(j) * 2 + f.tile_of(j) % 2; };
                   Vec p = lane_exps(s, lane);
                   double l = 0;
                   for (int n = 0; n < splits; ++n) {
                     const auto in_split = [&](int j) { return f.split_of(j) == n; };
                     double sum = 0;
                     for (int j = 0; j < 40; ++j)
                       if (in_split(j)) sum += p[static_cast<std::size_t>(j)];
                     l += sum * factor(max_where(s, in_split), 0);
                   }
                   return f.weighted(times(1 / l, exps(s, 0)));
                 });
  }
}

TEST_CASE("rows-mixed: l is that of all rows of the group") {
  const testing::Case c = make_case({.block_m = 8, .mask = kCausal});
  check_output(c, variant_of(c, "rows-mixed", {"rows = 8,", "m and l", "times = 1"}),
               [](const Formula& f) {
                 const int first = f.row.query / 8 * 8;
                 double l = 0;
                 for (int i = first; i < first + 8; ++i) l += std::exp(lse(f, i));
                 return f.weighted(times(1 / l, exps(f.scores(), 0)));
               });
  // In one tile every row keeps its own frame.
  const testing::Case one = make_case({.block_m = 8, .block_n = 64, .mask = kCausal});
  check_output(one, variant_of(one, "rows-mixed", {"rows = 4,", "of = l,"}), [](const Formula& f) {
    const int first = f.row.query / 4 * 4;
    double l = 0;
    for (int i = first; i < first + 4; ++i) {
      const Vec s = f.scores(i);
      l += total(exps(s, largest(s)));
    }
    const Vec s = f.scores();
    return times(1 / l, f.weighted(exps(s, largest(s))));
  });
}

TEST_CASE("rows-mixed-at-end: every row has its own frame, or the highest") {
  const testing::Case c = make_case({.block_m = 8, .mask = kCausal});
  const auto with = [](const Formula& f, bool max_too) {
    const int first = f.row.query / 4 * 4;
    double m = -kInf, l = 0;
    for (int i = first; i < first + 4; ++i) m = std::max(m, largest(f.scores(i)));
    for (int i = first; i < first + 4; ++i) {
      const Vec s = f.scores(i);
      l += total(exps(s, max_too ? m : largest(s)));
    }
    const Vec s = f.scores();
    const double own = max_too ? m : largest(s);
    return std::pair{times(1 / l, f.weighted(exps(s, own))), own + std::log(l)};
  };
  for (const bool max_too : {false, true}) {
    const Variant variant =
        variant_of(c, "rows-mixed-at-end", {"rows = 4,", max_too ? "m and l" : "of = l,"});
    check_output(c, variant, [&](const Formula& f) { return with(f, max_too).first; });
    check_lse(c, variant, [&](const Formula& f) { return with(f, max_too).second; });
  }
  // The warp's last rows are past the end.
  const testing::Case wide = make_case({.mask = kCausal});
  const Variant all = variant_of(wide, "rows-mixed-at-end", {"rows = 16,", "of = l,"});
  CHECK(predicted(wide, {0, 0, 31}, all.deviation).known[0] == 1);
  CHECK(predicted(wide, {0, 0, 32}, all.deviation).known[0] == 0);
}

TEST_CASE("probs-flushed: small P are 0, l may sum them") {
  const testing::Case c = make_case({.block_n = 64, .mask = kCausal});
  for (const bool sum_too : {false, true})
    check_output(c, variant_of(c, "probs-flushed", {"2^-9", sum_too ? "l and P V" : "in = P V"}),
                 [&](const Formula& f) {
                   const Vec p = exps(f.scores(), largest(f.scores()));
                   Vec kept = p;
                   for (double& x : kept) x = x < 0x1p-9 ? 0 : x;
                   return times(1 / total(sum_too ? kept : p), f.weighted(kept));
                 });
}

TEST_CASE("probs-narrow: P is rounded, l may be too") {
  // With few keys, few lie between two ways to round.
  const testing::Case c = make_case({.seqlen_k = 5, .block_n = 64});
  const auto check = [&](const char* type, int bits, double least, bool cut) {
    const auto rounded = [&](const Formula& f) {
      const Vec s = f.scores();
      Vec p = exps(s, largest(s));
      for (double& x : p)
        if (x > 0) {
          const double quantum = std::exp2(std::max(std::floor(std::log2(x)), least) - bits);
          x = (cut ? std::floor(x / quantum) : std::nearbyint(x / quantum)) * quantum;
        }
      return p;
    };
    check_rounded_output(c, variant_of(c, "probs-narrow", {type, "in = P V"}),
                         [&](const Formula& f) {
                           const Vec s = f.scores();
                           return times(1 / total(exps(s, largest(s))), f.weighted(rounded(f)));
                         });
    check_rounded_output(c, variant_of(c, "probs-narrow", {type, "in = l and P V"}),
                         [&](const Formula& f) {
                           const Vec p = rounded(f);
                           return times(1 / total(p), f.weighted(p));
                         });
  };
  check("e4m3", 3, -6, false);
  check("e5m2", 2, -14, false);
  check("type = tf32, in", 10, -126, false);
  check("tf32, cut", 10, -126, true);
  check("fp16, cut", 10, -14, true);
  check("bf16, cut", 7, -126, true);
}

TEST_CASE("the mask is missing in one of l and P V") {
  const testing::Case c = make_case({.block_n = 64, .mask = kCausal});
  const auto everything = [](const Formula& f) {
    Vec p;
    const double m = largest(f.scores());
    for (int j = 0; j < f.keys(); ++j) p.push_back(std::exp(f.scale() * f.dot(f.row.query, j) - m));
    return p;
  };
  const auto seen = [](const Formula& f) { return exps(f.scores(), largest(f.scores())); };
  check_output(c, variant_of(c, "mask-missing-in-sum"), [&](const Formula& f) {
    return times(1 / total(everything(f)), f.weighted(seen(f)));
  });
  check_output(c, variant_of(c, "mask-missing-in-product"), [&](const Formula& f) {
    return times(1 / total(seen(f)), f.weighted(everything(f)));
  });
}

TEST_CASE("probs-fragment: P of the element that took the place") {
  const testing::Case c = make_case({.seqlen_q = 32, .seqlen_k = 32, .mask = kCausal});
  const auto check = [&](const char* map,
                         const std::function<std::pair<int, int>(int, int)>& from) {
    check_output(c, variant_of(c, "probs-fragment", {map}), [&](const Formula& f) {
      Vec p;
      const int i = f.row.query;
      // Tile by tile, each in its own frame, brought to that of the row.
      const Vec mine = f.scores();
      for (int j = 0; j < 32; ++j) {
        const auto [r, k] = from(i % 16, j % 16);
        const Vec s = f.scores(i / 16 * 16 + r);
        const int end = (j / 16 + 1) * 16;
        const double frame = max_where(s, [&](int other) { return other < end; });
        const double own = max_where(mine, [&](int other) { return other < end; });
        const double score = s[static_cast<std::size_t>(j / 16 * 16 + k)];
        p.push_back(score == -kInf ? 0 : std::exp(score - frame + own - largest(mine)));
      }
      return times(1 / total(exps(mine, largest(mine))), f.weighted(p));
    });
  };
  check("[r + 8]", [](int r, int k) {
    return (r < 8) != (k < 8) ? std::pair{r ^ 8, k ^ 8} : std::pair{r, k};
  });
  check("8x8", [](int r, int k) { return std::pair{r / 8 * 8 + k % 8, k / 8 * 8 + r % 8}; });
  check("c and c ^ 1", [](int r, int k) { return std::pair{r, k ^ 1}; });
}

TEST_CASE("products that are added too often") {
  const testing::Case c = make_case({.head_dim_v = 64});
  check_output(c, variant_of(c, "product-times-n", {"n = 4"}),
               [](const Formula& f) { return times(4, f.attend(f.scores())); });
  check_output(c, variant_of(c, "product-overlaps", {"warps = 4"}), [](const Formula& f) {
    Vec o = f.attend(f.scores());
    for (std::size_t d = 0; d < o.size(); ++d) o[d] *= static_cast<double>(d / 16 + 1);
    return o;
  });
}

}  // namespace
}  // namespace attn_diag::reference

// Rows that lend each other alpha, l, m, P or their mask; reductions over other lanes or not over all of them:
// each hypothesis against its formula.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

Part whole(const Formula& f, int i) { return part_of(f, i, 0, 40); }

// The online softmax of a row, with the alphas of row `other` for l and for o.
Vec with_alphas(const Formula& f, int of_l, int of_o) {
  double m = -kInf, m_l = -kInf, m_o = -kInf, l = 0;
  Vec a(16, 0.0);
  const auto alpha_of = [&](double& before, int i, int t) {
    const double now = std::max(before, part_of(f, i, 16 * t, 16 * t + 16).m);
    const double alpha = factor(before, now);
    before = now;
    return alpha;
  };
  for (int t = 0; t < 3; ++t) {
    const Part p = tile(f, t);
    m = std::max(m, p.m);
    l = alpha_of(m_l, of_l, t) * l + factor(p.m, m) * p.l;
    a = plus(times(alpha_of(m_o, of_o, t), a), times(factor(p.m, m), p.a));
  }
  return times(1 / l, a);
}

TEST_CASE("fragment-row-alpha: alpha of another row, for o, for l or for both") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto check = [&](const char* row, const std::function<int(int i)>& other) {
    // Rows past the last query hold what nobody knows.
    const auto known = [&](const Formula& f, int of_l, int of_o) {
      return other(f.row.query) < 40 ? with_alphas(f, of_l, of_o) : Vec(16, NAN);
    };
    check_output(c, variant_of(c, "fragment-row-alpha", {row, "of = o"}),
                 [&](const Formula& f) { return known(f, f.row.query, other(f.row.query)); });
    check_output(c, variant_of(c, "fragment-row-alpha", {row, "of = l)"}),
                 [&](const Formula& f) { return known(f, other(f.row.query), f.row.query); });
    check_output(c, variant_of(c, "fragment-row-alpha", {row, "l and o"}), [&](const Formula& f) {
      return known(f, other(f.row.query), other(f.row.query));
    });
  };
  check("row = r ^ 1,", [](int i) { return i ^ 1; });
  check("row = the first of 8,", [](int i) { return i / 8 * 8; });
  check("row = the last of 16,", [](int i) { return i / 16 * 16 + 15; });
  check("row = r % 8,", [](int i) { return i / 16 * 16 + i % 8; });
  check("row = 4 in reverse,", [](int i) { return i / 4 * 4 + 3 - i % 4; });
  // The row before the tile's first one is another tile's.
  check("row = r - 1,", [](int i) { return i % 16 == 0 ? 40 : i - 1; });
}

// The online softmax of a row, with what `alpha_of` makes of the tile's number and its own alpha for o, and
// for l if it is there too.
Vec with_alpha(const Formula& f, bool l_too,
               const std::function<double(int t, double own)>& alpha_of) {
  double m = -kInf, l = 0;
  Vec a(16, 0.0);
  for (int t = 0; t < f.tiles(); ++t) {
    const Part p = tile(f, t);
    const double before = m;
    m = std::max(m, p.m);
    const double own = factor(before, m), alpha = alpha_of(t, own);
    l = (l_too ? alpha : own) * l + factor(p.m, m) * p.l;
    a = plus(times(alpha, a), times(factor(p.m, m), p.a));
  }
  return times(1 / l, a);
}
// The max of row i before tile t, and after it.
std::pair<double, double> rise(const Formula& f, int i, int t) {
  const double before = t == 0 ? -kInf : part_of(f, i, 0, t * f.block_n()).m;
  return {before, part_of(f, i, 0, (t + 1) * f.block_n()).m};
}

TEST_CASE("fragment-row-alpha: the largest alpha of a run of rows") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  for (const bool l_too : {false, true})
    check_output(
        c, variant_of(c, "fragment-row-alpha", {"largest of 4,", l_too ? "l and o" : "of = o"}),
        [&](const Formula& f) {
          return with_alpha(f, l_too, [&](int t, double own) {
            for (int i = f.row.query / 4 * 4; i < f.row.query / 4 * 4 + 4; ++i) {
              const auto [before, now] = rise(f, i, t);
              own = std::max(own, factor(before, now));
            }
            return own;
          });
        });
}

TEST_CASE("rescale-decided-by-rows: one row of a run decides, or all of them") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  const auto check = [&](const char* row, bool l_too,
                         const std::function<bool(int i, int n)>& asked, int n) {
    check_output(c, variant_of(c, "rescale-decided-by-rows", {row, l_too ? "l and o" : "of = o"}),
                 [&](const Formula& f) {
                   const int first = f.row.query / n * n;
                   // Rows past the last query hold what nobody knows.
                   for (int i = first; i < first + n; ++i)
                     if (asked(i, n) && i >= 40) return Vec(16, NAN);
                   return with_alpha(f, l_too, [&](int t, double own) {
                     for (int i = first; i < first + n; ++i) {
                       const auto [before, now] = rise(f, i, t);
                       if (asked(i, n) && t > 0 && now == before) own = 1;
                     }
                     return own;
                   });
                 });
  };
  check(
      "the first of 4,", true, [](int i, int n) { return i % n == 0; }, 4);
  check(
      "the first of 4,", false, [](int i, int n) { return i % n == 0; }, 4);
  check(
      "the last of 16,", true, [](int i, int n) { return i % n == n - 1; }, 16);
  check(
      "all of 4,", true, [](int, int) { return true; }, 4);
  check(
      "all of 2,", false, [](int, int) { return true; }, 2);
}

TEST_CASE("fragment-row-l: the l of another row, in o alone or in lse too") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto other = [](const Formula& f) { return f.row.query ^ 1; };
  const auto divided = [&](const Formula& f) {
    return times(1 / whole(f, other(f)).l, whole(f, f.row.query).a);
  };
  const auto lse = [&](const char* what, const std::function<double(const Formula&)>& expected) {
    const Variant variant = variant_of(c, "fragment-row-l", {"r ^ 1,", what});
    check_output(c, variant, divided);
    check_lse(c, variant, expected);
  };
  lse("= l of o)",
      [](const Formula& f) { return whole(f, f.row.query).m + std::log(whole(f, f.row.query).l); });
  lse("= l of o and of lse)",
      [&](const Formula& f) { return whole(f, f.row.query).m + std::log(whole(f, other(f)).l); });
  lse("m and l of lse)",
      [&](const Formula& f) { return whole(f, other(f)).m + std::log(whole(f, other(f)).l); });
}

TEST_CASE("row-max, row-probs, mask-of-row: m, P and the mask of another row") {
  const testing::Case c = make_case({.mask = kCausal});
  check_output(c, variant_of(c, "row-max", {"= r ^ 2)"}), [](const Formula& f) {
    double m = -kInf, m_other = -kInf, l = 0;
    Vec a(16, 0.0);
    for (int t = 0; t < 3; ++t) {
      const Part p = tile(f, t);
      const double before = m;
      m = std::max(m, p.m);
      m_other = std::max(m_other, part_of(f, f.row.query ^ 2, 16 * t, 16 * t + 16).m);
      const double beta = p.m == -kInf ? 0 : std::exp(p.m - m_other);
      l = factor(before, m) * l + beta * p.l;
      a = plus(times(factor(before, m), a), times(beta, p.a));
    }
    return times(1 / l, a);
  });
  const testing::Case one = make_case({.block_n = 64, .mask = kCausal});
  check_output(one, variant_of(one, "row-probs", {"= the first of 4)"}), [](const Formula& f) {
    return times(1 / whole(f, f.row.query).l, whole(f, f.row.query / 4 * 4).a);
  });
  check_output(c, variant_of(c, "mask-of-row", {"= r ^ 1,", "all"}), [](const Formula& f) {
    Vec s;
    for (int j = 0; j < 40; ++j)
      s.push_back(f.sees(f.row.query ^ 1, j) ? f.scale() * f.dot(f.row.query, j) : -kInf);
    return f.attend(s);
  });
}

TEST_CASE("row-max: P of more than its type holds is infinite in P V") {
  testing::Case c = make_case({.block_n = 64, .mask = kCausal});
  c.problem.softmax_scale = 2;
  const reference::PredictionInputs data(c.problem, c.geometry, {.probs = DType::kFp16},
                                         c.inputs());
  const Deviation deviation = variant_of(c, "row-max", {"= r ^ 2)"}).deviation;
  int infinite = 0, finite = 0;
  for (int query = 0; query < 40; ++query) {
    const Formula f{c, {0, 1, query}};
    Prediction out;
    predict(data, std::span(&f.row, 1), deviation, tensor_bit(Tensor::kO), out);
    Vec p = exps(f.scores(), largest(f.scores(query ^ 2)));
    for (double& x : p) x = x > 65504 ? kInf : x;
    const Vec sum = f.weighted(p);
    for (std::size_t d = 0; d < sum.size(); ++d) {
      const double is = out[Tensor::kO].value[d];
      CHECK(std::isnan(is) == std::isnan(sum[d]));
      CHECK((is == kInf) == (sum[d] == kInf));
      CHECK((is == -kInf) == (sum[d] == -kInf));
      ++(std::isfinite(is) ? finite : infinite);
    }
  }
  CHECK(infinite > 0);
  CHECK(finite > 0);
}

TEST_CASE("rows-mixed: rows whose numbers differ in some bits, and a sum that four lanes have") {
  const testing::Case c = make_case({.block_n = 64, .mask = kCausal});
  const auto mixed = [&](const char* rows, int bits, const char* times_n, double n) {
    check_output(c, variant_of(c, "rows-mixed", {rows, "of = l,", times_n}), [&](const Formula& f) {
      double l = 0;
      for (int i = 0; i < 48; ++i)
        if (((i ^ f.row.query) & ~bits) == 0) l += i < 40 ? whole(f, i).l : NAN;
      return times(1 / (n * l), whole(f, f.row.query).a);
    });
  };
  mixed("the bits 4,", 4, "times = 1)", 1);
  mixed("the bits 12,", 12, "times = 1)", 1);
  mixed("rows = 8,", 7, "times = 4)", 4);
}

TEST_CASE("alpha-missing-in-part, divided-by-another: some rows or columns") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto alphas = [](const Formula& f, bool right) {
    double m = -kInf, l = 0;
    Vec a(16, 0.0);
    for (int t = 0; t < 3; ++t) {
      const Part p = tile(f, t);
      const double alpha = factor(m, std::max(m, p.m));
      m = std::max(m, p.m);
      l = alpha * l + factor(p.m, m) * p.l;
      a = plus(times(right ? alpha : 1, a), times(factor(p.m, m), p.a));
    }
    return times(1 / l, a);
  };
  check_output(c, variant_of(c, "alpha-missing-in-part", {"odd runs of 8 columns", "of = o"}),
               [&](const Formula& f) {
                 Vec o = alphas(f, true);
                 const Vec bad = alphas(f, false);
                 for (std::size_t d = 8; d < 16; ++d) o[d] = bad[d];
                 return o;
               });
  check_output(c, variant_of(c, "alpha-missing-in-part", {"even runs of 1 rows", "of = o"}),
               [&](const Formula& f) { return alphas(f, f.row.query % 2 != 0); });
  check_output(c, variant_of(c, "divided-by-another", {"= 1 in odd runs of 8 rows"}),
               [](const Formula& f) {
                 const Part p = whole(f, f.row.query);
                 return times(f.row.query % 16 / 8 == 1 ? 1 : 1 / p.l, p.a);
               });
}

TEST_CASE("divided-by-another: lse, e^lse, m, a power of l") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto check = [&](const Variant& variant, const std::function<double(double, double)>& by) {
    check_output(c, variant, [&](const Formula& f) {
      const Part p = whole(f, f.row.query);
      return times(1 / by(p.m, p.l), p.a);
    });
  };
  const auto named = [&](const char* what) { return variant_of(c, "divided-by-another", {what}); };
  check(named("= lse)"), [](double m, double l) { return m + std::log(l); });
  check(named("= e^lse)"), [](double m, double l) { return std::exp(m) * l; });
  check(named("= m)"), [](double m, double) { return m; });
  check(named("= e^m)"), [](double m, double) { return std::exp(m); });
  check(named("= ln l)"), [](double, double l) { return std::log(l); });
  check(named("= l m)"), [](double m, double l) { return l * m; });
  check(named("= l + m)"), [](double m, double l) { return l + m; });
  check(named("= 1 / l)"), [](double, double l) { return 1 / l; });
}

TEST_CASE("tile-sum-not-shared: a butterfly that lacks its last step") {
  const testing::Case c = make_case({.mask = kCausal});
  // Lane i of 16 holds key i of every tile.
  const auto sum = [](const Formula& f, int lane) {
    const Vec p = exps(f.scores(), whole(f, f.row.query).m);
    double l = 0;
    for (std::size_t j = 0; j < 40; ++j)
      if ((static_cast<int>(j) - lane) % 2 == 0) l += p[j];
    return l;
  };
  const Variant variant =
      variant_of(c, "tile-sum-not-shared", {"only 2, 4, 8,", "j % lanes", "lanes = 16", "inf"});
  check_output(c, variant, [&](const Formula& f) {
    Vec a = f.weighted(exps(f.scores(), whole(f, f.row.query).m));
    for (std::size_t d = 0; d < 16; ++d) a[d] /= sum(f, static_cast<int>(d));
    return a;
  });
  check_lse(c, variant,
            [&](const Formula& f) { return whole(f, f.row.query).m + std::log(sum(f, 0)); });
  // A merge has what lane 0 wrote.
  const testing::Case split = make_case({.splits = 3});
  check_output(
      split, variant_of(split, "tile-sum-not-shared", {"only 2, 4, 8,", "j % lanes", "lanes = 16"}),
      [&](const Formula& f) {
        return times(1 / sum(f, 0), f.weighted(exps(f.scores(), whole(f, f.row.query).m)));
      });
}

}  // namespace
}  // namespace attn_diag::reference

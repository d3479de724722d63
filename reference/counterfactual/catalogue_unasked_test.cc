// What scores have besides: each hypothesis against its formula, spelled out.
#include <cmath>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

// softmax of other scores over what the row sees; masked: what becomes of the others.
Vec attend_to(const Formula& f, const std::function<double(int j, double s)>& score) {
  Vec s = f.scores();
  for (std::size_t j = 0; j < s.size(); ++j) s[j] = score(static_cast<int>(j), s[j]);
  return f.attend(s);
}

TEST_CASE("softcap-left-on: scores go through tanh unasked") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto tanh_of = [](double s) { return std::isinf(s) ? s : 1.5 * std::tanh(s / 1.5); };
  check_output(
      c, variant_of(c, "softcap-left-on", {"form = c tanh(s / c), cap"}).at(1.5),
      [&](const Formula& f) { return attend_to(f, [&](int, double s) { return tanh_of(s); }); });
  check_output(
      c, variant_of(c, "softcap-left-on", {"form = tanh(s / c)"}).at(1.5), [&](const Formula& f) {
        return attend_to(f, [&](int, double s) { return tanh_of(s) / (s < -99 ? 1 : 1.5); });
      });
  check_output(
      c, variant_of(c, "softcap-left-on", {"masked scores too"}).at(1.5), [&](const Formula& f) {
        return attend_to(f, [&](int, double s) { return std::isinf(s) ? -1.5 : tanh_of(s); });
      });
  check_output(c, variant_of(c, "softcap-left-on", {"s tanh(s)"}), [](const Formula& f) {
    return attend_to(f, [](int, double s) { return std::isinf(s) ? s : s * std::tanh(s); });
  });
}

TEST_CASE("distance-bias-left-on: a slope of the head times the distance") {
  const testing::Case c = make_case({});
  check_output(c, variant_of(c, "distance-bias-left-on", {"= key - query", "= 2^(-8"}).at(0.5),
               [](const Formula& f) {
                 const double slope = 0.5 * std::pow(2, -2 * (f.row.head + 1));
                 return attend_to(f,
                                  [&](int j, double s) { return s + slope * (j - f.row.query); });
               });
  check_output(c, variant_of(c, "distance-bias-left-on", {"-|key", "2^-(head"}).at(-1),
               [](const Formula& f) {
                 const double slope = std::pow(2, -(f.row.head + 1));
                 return attend_to(
                     f, [&](int j, double s) { return s + slope * std::abs(j - f.row.query); });
               });
  // The query's number makes nothing of o, but of lse.
  const auto lse = [](const Formula& f, double offset) {
    Vec s = f.scores();
    for (std::size_t j = 0; j < s.size(); ++j) s[j] += 0.125 * static_cast<double>(j) - offset;
    return largest(s) + std::log(total(exps(s, largest(s))));
  };
  check_lse(c, variant_of(c, "distance-bias-left-on", {"= key,", "of heads = 1,"}).at(0.125),
            [&](const Formula& f) { return lse(f, 0); });
  check_lse(c,
            variant_of(c, "distance-bias-left-on", {"= key - query,", "of heads = 1,"}).at(0.125),
            [&](const Formula& f) { return lse(f, 0.125 * f.row.query); });
}

TEST_CASE("scores-offset: lse is off by as much, and o is right") {
  const testing::Case c = make_case({.mask = kCausal});
  const Variant variant = variant_of(c, "scores-offset").at(3.5);
  for (const int query : {0, 17, 39}) {
    const Predicted is = predicted(c, {1, 2, query}, variant.deviation);
    const Predicted right = predicted(c, {1, 2, query}, {});
    for (std::size_t d = 0; d < is.o.size(); ++d) CHECK(std::fabs(is.o[d] - right.o[d]) < 1e-12);
  }
  check_lse(c, variant, [](const Formula& f) {
    const Vec s = f.scores();
    return 3.5 + largest(s) + std::log(total(exps(s, largest(s))));
  });
}

// q.k of the tile and of those before it in its split.
double summed_dots(const Formula& f, int j) {
  double sum = 0;
  for (int other = j; other >= 0 && f.split_of(other) == f.split_of(j); other -= f.block_n())
    sum += f.dot(f.row.query, other);
  return sum;
}

TEST_CASE("scores-not-cleared: q.k of earlier tiles is in that of a tile") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto expected = [](const Formula& f) {
    return attend_to(
        f, [&](int j, double s) { return std::isinf(s) ? s : f.scale() * summed_dots(f, j); });
  };
  check_output(c, variant_of(c, "scores-not-cleared"), expected);
  const testing::Case split = make_case({.seqlen_k = 72, .splits = 2});
  check_output(split, variant_of(split, "scores-not-cleared"), expected);
}

TEST_CASE("product-not-cleared: P V of earlier tiles, in their frames, is in that of a tile") {
  const testing::Case c = make_case({.mask = kCausal});
  // A tile of hidden keys adds nothing of its own, but what is left.
  const auto seen_by_tile = [](const Formula& f, int t) {
    const int first = f.row.query / f.block_m() * f.block_m();
    for (int i = first; i < std::min(first + f.block_m(), f.c.problem.seqlen_q); ++i)
      for (int j = t * f.block_n(); j < std::min((t + 1) * f.block_n(), f.keys()); ++j)
        if (f.sees(i, j)) return true;
    return false;
  };
  for (const bool all : {true, false}) {
    const Variant variant = variant_of(c, "product-not-cleared", {all ? "all" : "visible"});
    check_output(c, variant, [&](const Formula& f) {
      Vec sum(16, 0.0), o(16, 0.0);
      double m = -INFINITY, l = 0;
      for (int t = 0; t < f.tiles(); ++t) {
        if (!all && !seen_by_tile(f, t)) continue;
        const Part part = tile(f, t);
        const double to = std::max(m, part.m), alpha = factor(m, to);
        sum = plus(times(factor(part.m, to), part.a), sum);
        o = plus(times(alpha, o), sum);
        l = alpha * l + factor(part.m, to) * part.l;
        m = to;
      }
      return times(1 / l, o);
    });
  }
}

}  // namespace
}  // namespace attn_diag::reference

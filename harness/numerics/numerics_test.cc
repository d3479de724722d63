#include "attn_diag/harness/numerics.h"

#include <cmath>

#include "harness/testing/captures.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using testing::empty_capture;
using testing::put;

// Two queries, two keys, one dim: S = ((1, 0), (0, 2)) as in fixtures/hand/2x2_one_tile.
struct Hand {
  Problem problem;
  Geometry geometry;

  Hand() {
    problem.seqlen_q = problem.seqlen_k = 2;
    problem.head_dim = 2;
    problem.dtype = DType::kFp32;
    geometry.tile = {2, 2};
  }
  Capture capture() const {
    Capture c = empty_capture(problem, geometry);
    fill(c.q, {1, 0, 0, 1});
    fill(c.k, {1, 0, 0, 2});
    fill(c.v, {1, 3});
    c.arithmetic.output = DType::kFp32;
    return c;
  }
  static void fill(SharedBytes& to, const std::vector<double>& values) {
    std::vector<std::byte>& bytes = to.edit();
    bytes.resize(values.size() * sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i)
      store_element(bytes.data(), DType::kFp32, static_cast<std::int64_t>(i), values[i]);
  }
  // o of row 0: weights e : 1; of row 1: 1 : e^2.
  static double o(int row) {
    const double a = row == 0 ? std::exp(1.0) : 1, b = row == 0 ? 1 : std::exp(2.0);
    return (a + 3 * b) / (a + b);
  }
};

const TensorNumerics& of(const Numerics& n, Tensor t) {
  for (const TensorNumerics& x : n.tensors)
    if (x.tensor == t) return x;
  throw std::runtime_error("no such tensor");
}

TEST_CASE("a ULP histogram has its edges at powers of 2") {
  REQUIRE(ulp_bin(0) == 0);
  REQUIRE(ulp_bin(0.5) == 0);
  REQUIRE(ulp_bin(0.51) == 1);
  REQUIRE(ulp_bin(1) == 1);
  REQUIRE(ulp_bin(1.01) == 2);
  REQUIRE(ulp_bin(2) == 2);
  REQUIRE(ulp_bin(3) == 3);
  REQUIRE(ulp_bin(4) == 3);
  REQUIRE(ulp_bin(1e300) == kUlpBins - 1);
  REQUIRE(ulp_bin(HUGE_VAL) == kUlpBins - 1);
}

TEST_CASE("a quantile read from a histogram is right within 5 percent, and never too small") {
  std::vector<std::int64_t> ratios(kRatioBins);
  for (int i = 1; i <= 1000; ++i) ++ratios[static_cast<std::size_t>(ratio_bin(i / 1000.0))];
  for (const double q : {0.1, 0.5, 0.9, 0.99, 1.0}) {
    REQUIRE(quantile(ratios, q) >= q * (1 - 1e-12));
    REQUIRE(quantile(ratios, q) <= q * 1.05);
  }
  REQUIRE(quantile(std::vector<std::int64_t>(kRatioBins), 0.5) == 0);
  std::vector<std::int64_t> exact(kRatioBins);
  exact[0] = 5;
  REQUIRE(quantile(exact, 0.99) == 0);
  exact[kRatioBins - 1] = 100;
  REQUIRE(std::isinf(quantile(exact, 0.5)));
}

TEST_CASE("errors of o by hand: ULPs, rms, bias and shrinkage") {
  const Hand hand;
  Capture c = hand.capture();
  c.arithmetic.output = DType::kFp16;
  // Both between 1 and 4; ULPs of fp16 are 2^-10 from 1 to 2, 2^-9 from 2 to 4.
  const double o0 = Hand::o(0), o1 = Hand::o(1);
  REQUIRE((o0 > 1 && o0 < 2 && o1 > 2 && o1 < 4));
  put(c, Tensor::kO, DType::kFp32, {o0 + 3 * 0x1p-10, o1 + 1 * 0x1p-9});
  const Numerics n = analyse_numerics(c, {});
  const TensorNumerics& o = of(n, Tensor::kO);
  REQUIRE(o.storage == DType::kFp16);
  REQUIRE(o.judged == 2);
  REQUIRE(o.mismatched == 2);  // one rounding is half an ULP
  REQUIRE(o.max_ulp == Approx(3).margin(1e-3));
  REQUIRE(o.with_ulps == 2);
  const double e0 = 3 * 0x1p-10, e1 = 0x1p-9, rms = std::sqrt((e0 * e0 + e1 * e1) / 2);
  REQUIRE(o.rms_err == Approx(rms).epsilon(1e-3));
  REQUIRE(o.bias == Approx((e0 + e1) / 2 / rms).epsilon(1e-3));
  REQUIRE(o.shrinkage == o.bias);  // both are positive
  put(c, Tensor::kO, DType::kFp32, {o0 - e0, o1 + e0});
  REQUIRE(std::fabs(of(analyse_numerics(c, {}), Tensor::kO).bias) < 1e-3);
}

TEST_CASE("errors are told by query, by visible keys and by the size of scores") {
  Hand hand;
  hand.problem.mask.kind = MaskKind::kCausal;
  Capture c = hand.capture();
  // Row 0 sees key 0 alone: o = 1. Its S is 1; the largest of row 1 is 2.
  put(c, Tensor::kO, DType::kFp32, {1 + 0x1p-10, Hand::o(1)});
  const TensorNumerics o = of(analyse_numerics(c, {}), Tensor::kO);
  REQUIRE(o.by_query.size() == 2);
  REQUIRE((o.by_query[0].low == 0 && o.by_query[1].low == 1 && o.by_query[1].high == 2));
  REQUIRE(o.by_query[0].max_err_over_bound > 100);
  REQUIRE(o.by_query[1].max_err_over_bound < 1);
  REQUIRE(o.by_keys.size() == 2);
  REQUIRE((o.by_keys[0].low == 1 && o.by_keys[1].low == 2));
  REQUIRE(o.by_keys[0].rms_err_over_bound == o.by_query[0].rms_err_over_bound);
  REQUIRE(o.by_score.size() == 2);
  REQUIRE((o.by_score[0].low == 1 && o.by_score[1].low == 2));
}

TEST_CASE("ULPs are not counted where rounding leaves fewer than half of the digits") {
  // S = q.k of (1, 1) and (1, -1 + 2^-20): 2^-20, of products of 1: the bound is 4 2^-24 and more, 2^-2 of S.
  Hand hand;
  hand.problem.seqlen_q = hand.problem.seqlen_k = 1;
  Capture c = empty_capture(hand.problem, hand.geometry);
  Hand::fill(c.q, {1, 1});
  Hand::fill(c.k, {1, -1 + 0x1p-20});
  Hand::fill(c.v, {1});
  put(c, Tensor::kS, DType::kFp32, {0x1p-20 + 0x1p-24});
  const Numerics n = analyse_numerics(c, {});
  REQUIRE(of(n, Tensor::kS).judged == 1);
  REQUIRE(of(n, Tensor::kS).with_ulps == 0);
  REQUIRE(of(n, Tensor::kS).max < 1);
  // Sum |ab| = 2 - 2^-20, |sum ab| = 2^-20: 6.3 digits.
  const Cancellation& s = n.cancellation.front();
  REQUIRE(s.tensor == Tensor::kS);
  REQUIRE(s.dots == 1);
  REQUIRE(s.max_digits == Approx(std::log10(0x1p21 - 1)).epsilon(1e-12));
  REQUIRE(s.by_digits[6] == 1);
  REQUIRE(s.worst.front().sum_abs == 2 - 0x1p-20);
  REQUIRE(s.largest_relative);
  REQUIRE(s.explained);
  // As large an error of a sum that does not cancel is not explained by it.
  Hand::fill(c.k, {1, 1});
  put(c, Tensor::kS, DType::kFp32, {2.25});
  const Cancellation wrong = analyse_numerics(c, {}).cancellation.front();
  REQUIRE(wrong.max_digits == 0);
  REQUIRE(wrong.largest_relative);
  REQUIRE_FALSE(wrong.explained);
}

TEST_CASE("o cancels where its weighted values do, by hand") {
  Hand hand;
  Capture c = hand.capture();
  Hand::fill(c.v, {1, -1});
  put(c, Tensor::kO, DType::kFp32, {0.46, -0.76});
  // Row 0: (e - 1) / (e + 1) of sum |ab| 1.
  const Numerics n = analyse_numerics(c, {});
  REQUIRE(n.cancellation.size() == 2);
  const Cancellation& o = n.cancellation[1];
  REQUIRE(o.tensor == Tensor::kO);
  REQUIRE(o.dots == 2);
  const double e = std::exp(1.0);
  REQUIRE(o.worst.front().digits == Approx(std::log10((e + 1) / (e - 1))).epsilon(1e-9));
  REQUIRE(o.worst.front().sum_abs == Approx(1));
}

TEST_CASE("the census counts what is no normal number where one belongs") {
  Hand hand;
  hand.problem.mask.kind = MaskKind::kCausal;
  Capture c = hand.capture();
  c.arithmetic.probs = DType::kFp16;
  // -inf where masked is no event; NaN, an infinity, a zero and a subnormal are.
  put(c, Tensor::kS, DType::kFp32, {1, -HUGE_VAL, NAN, HUGE_VAL});
  put(c, Tensor::kP, DType::kFp32, {0, 0, 0x1p-20, 1});
  const Numerics n = analyse_numerics(c, {});
  const Census &s = of(n, Tensor::kS).census, &p = of(n, Tensor::kP).census;
  REQUIRE((s.nan == 1 && s.plus_inf == 1 && s.minus_inf == 0 && s.overflow == 1));
  REQUIRE((p.flushed == 1 && p.underflowed == 0 && p.subnormal == 1));
}

TEST_CASE("the range of P in its type: what vanishes, and how much of a row that is") {
  Hand hand;
  Capture c = hand.capture();
  Hand::fill(c.k, {20, 0, 0, 2});  // row 0: S = (20, 0): P of key 1 is e^-20 = 2.06e-9 < 2^-25
  c.arithmetic.probs = DType::kFp16;
  put(c, Tensor::kO, DType::kFp32, {1, 2.76});
  const Numerics n = analyse_numerics(c, {});
  REQUIRE(n.ranges.size() == 2);
  const RangeInType &s = n.ranges[0], &p = n.ranges[1];
  REQUIRE((s.largest == 20 && s.smallest == 2 && s.cells == 4));
  REQUIRE(s.error_of_largest == 0x1p4 * 0x1p-24);
  REQUIRE((p.type == DType::kFp16 && p.vanishes == 1 && p.largest == 1));
  REQUIRE(p.lost_of_row == Approx(std::exp(-20.0)).epsilon(1e-6));
}

TEST_CASE("a NaN of o is followed back through l = 0 to the P that are all 0") {
  const Hand hand;
  Capture c = hand.capture();
  const double inf = HUGE_VAL;
  put(c, Tensor::kS, DType::kFp32, {1, 0, 0, 2});
  put(c, Tensor::kM, DType::kFp32, {inf, 2});  // wrong: exp(S - inf) = 0
  put(c, Tensor::kP, DType::kFp32, {0, 0, std::exp(-2.0), 1});
  put(c, Tensor::kL, DType::kFp32, {0, 1 + std::exp(-2.0)});
  put(c, Tensor::kPartialO, DType::kFp32, {0, 3});
  put(c, Tensor::kRunningM, DType::kFp32, {inf, 2});
  put(c, Tensor::kRunningL, DType::kFp32, {0, 1 + std::exp(-2.0)});
  put(c, Tensor::kRunningO, DType::kFp32, {0, 3 + std::exp(-2.0)});
  put(c, Tensor::kO, DType::kFp32, {NAN, Hand::o(1)});
  const Numerics n = analyse_numerics(c, {});
  REQUIRE(n.origins.size() == 1);  // m, running_m and o come from one place
  std::vector<Tensor> path;
  for (const OriginStep& s : n.origins.front().steps) path.push_back(s.tensor);
  REQUIRE(path ==
          std::vector<Tensor>{Tensor::kO, Tensor::kRunningL, Tensor::kL, Tensor::kP, Tensor::kM});
  REQUIRE(n.origins.front().steps[2].why == "all P of the tile are 0");
  REQUIRE(n.origins.front().steps.back().value == inf);
}

TEST_CASE("a NaN of an input is the origin of what it reaches") {
  const Hand hand;
  Capture c = hand.capture();
  Hand::fill(c.k, {1, 0, NAN, 2});
  put(c, Tensor::kS, DType::kFp32, {1, NAN, 0, NAN});
  put(c, Tensor::kO, DType::kFp32, {NAN, NAN});
  const Numerics n = analyse_numerics(c, {});
  REQUIRE(n.origins.size() == 1);
  const NonFiniteOrigin& o = n.origins.front();
  REQUIRE(o.steps.front().tensor == Tensor::kO);
  REQUIRE(o.cells == 2);
  REQUIRE(o.steps.back().input == 'k');
  REQUIRE((o.steps.back().index[2] == 1 && o.steps.back().index[3] == 0));
}

TEST_CASE("what each rounding adds, by hand, and what is not explained") {
  const Hand hand;
  Capture c = hand.capture();
  c.arithmetic.probs = DType::kFp16;
  // P rounded alone: l is summed before.
  std::vector<double> o, rounded;
  double squares = 0;
  for (int row = 0; row < 2; ++row) {
    const double p = std::exp(row == 0 ? -1.0 : -2.0);  // of the other key; its own is 1
    std::byte bits[2];
    store_element(bits, DType::kFp16, 0, p);
    const double r = load_element(bits, DType::kFp16, 0);
    const double v = row == 0 ? 3 : 1, own = row == 0 ? 1 : 3;
    o.push_back((own + v * p) / (1 + p));
    rounded.push_back((own + v * r) / (1 + p));
    squares += std::pow(rounded.back() - o.back(), 2);
  }
  put(c, Tensor::kO, DType::kFp32, rounded);
  const Contributions right = analyse_numerics(c, {}).contributions;
  REQUIRE(right.why_not.empty());
  REQUIRE(right.parts.front().what == "P rounded to fp16");
  REQUIRE(right.parts.front().rms == Approx(std::sqrt(squares / 2)).epsilon(1e-6));
  REQUIRE(right.parts.front().share > 0.99);
  REQUIRE(right.parts.front().rms_without < 1e-6);
  REQUIRE(right.rms_observed == Approx(right.rms_together).epsilon(0.01));
  REQUIRE(right.left_over < 0.01);
  REQUIRE(right.explained);
  // They are not explained for a kernel that declares P in fp32.
  c.arithmetic.probs = DType::kFp32;
  const Contributions wrong = analyse_numerics(c, {}).contributions;
  REQUIRE_FALSE(wrong.explained);
  REQUIRE(wrong.ratio() > 100);
  REQUIRE(wrong.instead.front().what == "P rounded to fp16");
  REQUIRE(wrong.instead.front().rms == right.parts.front().rms);
}

TEST_CASE("statistics do not depend on the number of threads") {
  Problem p;
  p.heads = p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 100;
  p.head_dim = p.head_dim_v = 8;
  Geometry g;
  g.tiles_per_split = 2;
  const Capture c = testing::reference_capture(p, g, 3);
  NumericsOptions one, four;
  one.threads = 1;
  four.threads = 4;
  const Numerics a = analyse_numerics(c, one), b = analyse_numerics(c, four);
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    REQUIRE(a.tensors[i].ratios == b.tensors[i].ratios);
    REQUIRE(a.tensors[i].ulps == b.tensors[i].ulps);
    REQUIRE(a.tensors[i].rms_err == b.tensors[i].rms_err);
    REQUIRE(a.tensors[i].bias == b.tensors[i].bias);
  }
  REQUIRE(a.cancellation[0].median_digits == b.cancellation[0].median_digits);
  REQUIRE(a.cancellation[0].worst[4].index == b.cancellation[0].worst[4].index);
}

}  // namespace
}  // namespace attn_diag

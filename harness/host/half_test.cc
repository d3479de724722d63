// half and bfloat16 against arithmetic written from the formats' definitions, in exact (long double)
// or wide (double) arithmetic.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

struct Half {
  using Type = __half;
  static constexpr int kFractionBits = 10, kMinExponent = -14, kMaxExponent = 15;
  static Type from_bits(unsigned bits) {
    return __ushort_as_half(static_cast<std::uint16_t>(bits));
  }
  static unsigned bits(Type x) { return __half_as_ushort(x); }
  static Type round(float x) { return __float2half_rn(x); }
  static Type round(double x) { return __double2half(x); }
  static float value(Type x) { return __half2float(x); }
};

struct Bfloat16 {
  using Type = __nv_bfloat16;
  static constexpr int kFractionBits = 7, kMinExponent = -126, kMaxExponent = 127;
  static Type from_bits(unsigned bits) {
    return __ushort_as_bfloat16(static_cast<std::uint16_t>(bits));
  }
  static unsigned bits(Type x) { return __bfloat16_as_ushort(x); }
  static Type round(float x) { return __float2bfloat16_rn(x); }
  static Type round(double x) { return __double2bfloat16(x); }
  static float value(Type x) { return __bfloat162float(x); }
};

template <class F>
double defined_value(unsigned bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  const unsigned fraction = bits & ((1u << F::kFractionBits) - 1);
  const int exponent = static_cast<int>((bits & 0x7FFFu) >> F::kFractionBits);
  if (exponent == F::kMaxExponent - F::kMinExponent + 2)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  const double significand =
      exponent == 0 ? fraction : fraction + static_cast<double>(1u << F::kFractionBits);
  return sign *
         std::ldexp(significand, std::max(exponent, 1) - 1 + F::kMinExponent - F::kFractionBits);
}

// The bits of x rounded to nearest, ties to even. The last place is found from x's exponent; an exact
// multiple of it is made by one rounding of x / place.
template <class F>
unsigned defined_rounding(long double x) {
  if (std::isnan(x)) return 0x7FFFu;
  const unsigned sign = std::signbit(x) ? 0x8000u : 0u;
  const unsigned infinity = static_cast<unsigned>(F::kMaxExponent - F::kMinExponent + 2)
                            << F::kFractionBits;
  x = std::fabs(x);
  if (std::isinf(x)) return sign | infinity;
  if (x == 0) return sign;
  const int exponent = std::max(std::ilogb(x), F::kMinExponent);
  const long double places = std::nearbyint(std::ldexp(x, F::kFractionBits - exponent));
  // `places` counts last places from 0; adding the biased exponent's places carries rightly.
  const auto encoded = static_cast<unsigned>(places) +
                       (static_cast<unsigned>(exponent - F::kMinExponent) << F::kFractionBits);
  return sign | std::min(encoded, infinity);
}

template <class F>
bool same(unsigned a, unsigned b) {
  return a == b || (std::isnan(defined_value<F>(a)) && std::isnan(defined_value<F>(b)));
}

template <class F>
void check_all_patterns() {
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    const float value = F::value(F::from_bits(bits));
    const double expected = defined_value<F>(bits);
    CAPTURE(bits);
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(value));
      REQUIRE(F::bits(F::round(value)) == 0x7FFFu);
    } else {
      REQUIRE(static_cast<double>(value) == expected);
      REQUIRE(std::signbit(value) == ((bits & 0x8000u) != 0));
      REQUIRE(F::bits(F::round(value)) == bits);
    }
  }
}

// Every midpoint between neighbours, the floats and doubles next to it on either side.
template <class F>
void check_rounding_at_midpoints() {
  int failures = 0;
  const auto check = [&](auto x) {
    failures += F::bits(F::round(x)) != defined_rounding<F>(x);
    failures += F::bits(F::round(-x)) != defined_rounding<F>(-x);
  };
  const unsigned infinity = static_cast<unsigned>(F::kMaxExponent - F::kMinExponent + 2)
                            << F::kFractionBits;
  for (unsigned bits = 0; bits < infinity; ++bits) {
    const double low = defined_value<F>(bits);
    // Beyond the largest finite number, the midpoint to what would come next.
    const double high =
        bits + 1 < infinity ? defined_value<F>(bits + 1) : std::ldexp(1.0, F::kMaxExponent + 1);
    const double middle = low / 2 + high / 2;
    const auto exact = static_cast<float>(middle);
    check(exact);
    check(std::nextafter(exact, 0.0f));
    check(std::nextafter(exact, std::numeric_limits<float>::infinity()));
    check(middle);
    check(std::nextafter(middle, 0.0));
    check(std::nextafter(middle, std::numeric_limits<double>::infinity()));
  }
  CHECK(failures == 0);
}

template <class F>
void check_rounding_of_any_float() {
  std::mt19937 random(7);
  int failures = 0;
  for (int i = 0; i < 1000000; ++i) {
    const float x = __uint_as_float(static_cast<std::uint32_t>(random()));
    failures += !same<F>(F::bits(F::round(x)), defined_rounding<F>(x));
  }
  CHECK(failures == 0);
}

template <class F>
std::vector<unsigned> interesting_patterns() {
  std::vector<unsigned> patterns = {0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x0003};
  const unsigned exponents = static_cast<unsigned>(F::kMaxExponent - F::kMinExponent + 3);
  for (unsigned e = 0; e<exponents; e += exponents> 64 ? 9 : 2)
    for (const unsigned fraction : {0u, 1u, 2u, (1u << F::kFractionBits) / 2,
                                    (1u << F::kFractionBits) / 3, (1u << F::kFractionBits) - 1})
      for (const unsigned sign : {0u, 0x8000u})
        patterns.push_back(sign | e << F::kFractionBits | fraction);
  return patterns;
}

template <class F>
void check_arithmetic() {
  const std::vector<unsigned> patterns = interesting_patterns<F>();
  int failures = 0;
  for (const unsigned a : patterns)
    for (const unsigned b : patterns) {
      const auto x = F::from_bits(a), y = F::from_bits(b);
      const long double u = defined_value<F>(a), v = defined_value<F>(b);
      // Sums and products of these are exact in 64 bits, or so unequal that one is a sticky bit.
      failures += !same<F>(F::bits(__hadd(x, y)), defined_rounding<F>(u + v));
      failures += !same<F>(F::bits(__hsub(x, y)), defined_rounding<F>(u - v));
      failures += !same<F>(F::bits(__hmul(x, y)), defined_rounding<F>(u * v));
      failures += !same<F>(F::bits(__hdiv(x, y)), defined_rounding<F>(u / v));
      failures += F::bits(x + y) != F::bits(__hadd(x, y));
      failures += F::bits(x - y) != F::bits(__hsub(x, y));
      failures += F::bits(x * y) != F::bits(__hmul(x, y));
      failures += F::bits(x / y) != F::bits(__hdiv(x, y));
      failures += __heq(x, y) != (u == v) || (x == y) != (u == v);
      failures += __hne(x, y) != (u != v) || (x != y) != (u != v);
      failures += __hlt(x, y) != (u < v) || (x < y) != (u < v);
      failures += __hle(x, y) != (u <= v) || (x <= y) != (u <= v);
      failures += __hgt(x, y) != (u > v) || (x > y) != (u > v);
      failures += __hge(x, y) != (u >= v) || (x >= y) != (u >= v);
      const auto greater = std::isnan(u) ? v : std::isnan(v) ? u : std::max(u, v);
      const auto less = std::isnan(u) ? v : std::isnan(v) ? u : std::min(u, v);
      failures += !same<F>(F::bits(__hmax(x, y)) & 0x7FFFu, defined_rounding<F>(greater) & 0x7FFFu);
      failures += !same<F>(F::bits(__hmin(x, y)) & 0x7FFFu, defined_rounding<F>(less) & 0x7FFFu);
    }
  CHECK(failures == 0);
}

template <class F>
void check_fused_multiply_add() {
  // Random patterns near each other in exponent, so that the sum matters; the reference splits the sum
  // exactly and breaks ties by the rest.
  std::mt19937 random(11);
  int failures = 0, differs_from_two_roundings = 0;
  for (int i = 0; i < 2000000; ++i) {
    const unsigned a = random() & 0xFFFFu, b = random() & 0xFFFFu, c = random() & 0xFFFFu;
    const auto x = F::from_bits(a), y = F::from_bits(b), z = F::from_bits(c);
    const double u = defined_value<F>(a), v = defined_value<F>(b), w = defined_value<F>(c);
    const double product = u * v;  // exact
    if (!std::isfinite(product) || !std::isfinite(w)) continue;
    // s + rest is the exact sum. Rounding s directs; where s is exactly a tie or a number of the
    // type, the sign of the rest decides: nudge s by far less than the type can see.
    const double s = product + w;
    const double t = s - product;
    const double rest = (product - (s - t)) + (w - t);
    long double exact = s;
    if (rest != 0)
      exact += std::copysign(std::ldexp(std::fabs(static_cast<long double>(s)), -60),
                             static_cast<long double>(rest));
    failures += !same<F>(F::bits(__hfma(x, y, z)), defined_rounding<F>(exact));
    differs_from_two_roundings +=
        !same<F>(F::bits(__hfma(x, y, z)), F::bits(F::round(static_cast<float>(u * v + w))));
  }
  CHECK(failures == 0);
  CHECK(differs_from_two_roundings > 0);  // the cases do tell one rounding from two
}

}  // namespace

TEST_CASE("half and bfloat16 are trivially constructible, of CUDA's size and alignment") {
  STATIC_REQUIRE(std::is_trivially_default_constructible_v<half>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<half>);
  STATIC_REQUIRE(sizeof(half) == 2);
  STATIC_REQUIRE(alignof(half2) == 4);
  STATIC_REQUIRE(std::is_trivially_default_constructible_v<__nv_bfloat16>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<__nv_bfloat162>);
  STATIC_REQUIRE(alignof(__nv_bfloat162) == 4);
}

TEST_CASE("all 65536 half patterns convert to their value and back") { check_all_patterns<Half>(); }
TEST_CASE("all 65536 bfloat16 patterns convert to their value and back") {
  check_all_patterns<Bfloat16>();
}

TEST_CASE("half rounds to nearest even around every midpoint, from float and from double") {
  check_rounding_at_midpoints<Half>();
}
TEST_CASE("bfloat16 rounds to nearest even around every midpoint, from float and from double") {
  check_rounding_at_midpoints<Bfloat16>();
}

TEST_CASE("any float rounds to half and bfloat16 as defined") {
  check_rounding_of_any_float<Half>();
  check_rounding_of_any_float<Bfloat16>();
}

TEST_CASE("rounding through float would be wrong where half rounds a double") {
  // 1 + 2^-11 + 2^-40: just above the midpoint of 1 and its successor; as a float exactly the midpoint.
  const double x = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  CHECK(__half_as_ushort(__double2half(x)) == 0x3C01);
  CHECK(__half_as_ushort(__float2half(static_cast<float>(x))) == 0x3C00);
}

TEST_CASE("half arithmetic and comparisons are those of the exact result, rounded once") {
  check_arithmetic<Half>();
}
TEST_CASE("bfloat16 arithmetic and comparisons are those of the exact result, rounded once") {
  check_arithmetic<Bfloat16>();
}

TEST_CASE("__hfma rounds once") {
  check_fused_multiply_add<Half>();
  check_fused_multiply_add<Bfloat16>();
}

TEST_CASE("half pairs convert and compute element by element") {
  const half2 a = __floats2half2_rn(1.5f, -2.0f), b = __float2half2_rn(0.5f);
  CHECK(__half22float2(__hadd2(a, b)).x == 2.0f);
  CHECK(__half22float2(__hadd2(a, b)).y == -1.5f);
  CHECK(__half22float2(__hmul2(a, b)).y == -1.0f);
  CHECK(__half22float2(__hfma2(a, b, b)).x == 1.25f);
  CHECK(__half22float2(a - b).x == 1.0f);
  CHECK(__half22float2(__hmax2(a, b)).y == 0.5f);
  CHECK(__half22float2(-a).y == 2.0f);
  CHECK(__half2float(__low2half(a)) == 1.5f);
  CHECK(__half2float(__high2half(a)) == -2.0f);
  CHECK(__half22float2(__lowhigh2highlow(a)).x == -2.0f);
  CHECK(__half22float2(__low2half2(a)).y == 1.5f);
  CHECK(__half22float2(__halves2half2(__float2half(3.0f), __float2half(4.0f))).y == 4.0f);
  const __nv_bfloat162 c = __floats2bfloat162_rn(1.5f, -2.0f);
  CHECK(__bfloat1622float2(__hmul2(c, c)).y == 4.0f);
  CHECK(__bfloat162float(__high2bfloat16(c)) == -2.0f);
}

TEST_CASE("half predicates tell NaN and infinity apart from numbers") {
  CHECK(__hisnan(__ushort_as_half(0x7E00)));
  CHECK(__hisnan(__ushort_as_half(0xFC01)));
  CHECK_FALSE(__hisnan(__ushort_as_half(0x7C00)));
  CHECK(__hisinf(__ushort_as_half(0x7C00)) == 1);
  CHECK(__hisinf(__ushort_as_half(0xFC00)) == -1);
  CHECK(__hisinf(__ushort_as_half(0x7BFF)) == 0);
  CHECK(__half_as_ushort(__habs(__ushort_as_half(0xC000))) == 0x4000);
  CHECK(__half_as_ushort(__hmax(__ushort_as_half(0x8000), __ushort_as_half(0x0000))) == 0);
  CHECK(__half_as_ushort(__hmin(__ushort_as_half(0x0000), __ushort_as_half(0x8000))) == 0x8000);
}

TEMPLATE_TEST_CASE("comparisons of pairs, and of NaN, are CUDA's", "", __half2, __nv_bfloat162) {
  using T = decltype(TestType::x);
  const T nan(NAN);
  const TestType a(T(1.0f), nan), b(T(1.0f), T(2.0f)), c(T(0.5f), T(3.0f));
  CHECK(__heq2_mask(a, b) == 0x0000FFFFu);
  CHECK(__hneu2_mask(a, b) == 0xFFFF0000u);
  CHECK(__hne2_mask(a, b) == 0u);
  CHECK(__hltu2_mask(a, b) == 0xFFFF0000u);
  CHECK(static_cast<float>(__hgt2(b, c).x) == 1.0f);
  CHECK(static_cast<float>(__hgt2(b, c).y) == 0.0f);
  CHECK(__hbge2(b, b));
  CHECK_FALSE(__hbge2(b, c));
  CHECK(b == b);
  CHECK_FALSE(a != a);  // both parts must differ
  CHECK((nan != nan && !(nan == nan)));
  CHECK(static_cast<float>(__hisnan2(a).y) == 1.0f);
  CHECK(__hisnan(__hmax_nan(T(1.0f), nan)));
  CHECK(static_cast<float>(__hmax(T(1.0f), nan)) == 1.0f);
  CHECK(__hisnan(__hmin2_nan(a, b).y));
  CHECK(static_cast<float>(__hmin2(a, b).y) == 2.0f);
}

TEMPLATE_TEST_CASE("pairs are put together, taken apart and computed with", "", __half2,
                   __nv_bfloat162) {
  using T = decltype(TestType::x);
  TestType a(T(1.5f), T(-2.0f));
  const TestType b(T(0.25f), T(4.0f));
  CHECK((__low2float(a) == 1.5f && __high2float(a) == -2.0f));
  CHECK(__high2float(__lowhigh2highlow(a)) == 1.5f);
  a += b;
  CHECK((__low2float(a) == 1.75f && __high2float(a) == 2.0f));
  a *= b;
  CHECK((__low2float(a) == 0.4375f && __high2float(a) == 8.0f));
  CHECK(__high2float(__hfma2_relu(a, TestType(T(-1.0f), T(-1.0f)), b)) == 0.0f);
  CHECK(__high2float(__hadd2_sat(a, b)) == 1.0f);
  CHECK(static_cast<float>(__hsub_sat(T(NAN), T(1.0f))) == 0.0f);
  CHECK(__low2float(__h2div(b, TestType(T(2.0f), T(2.0f)))) == 0.125f);
  CHECK((__low2float(h2exp2(b)) == static_cast<float>(T(std::exp2(0.25f))) &&
         __high2float(h2log2(b)) == 2.0f));
  CHECK(__high2float(h2rsqrt(b)) == 0.5f);
  CHECK(__low2float(h2rint(TestType(T(2.5f), T(0.0f)))) == 2.0f);
  T one(1);
  CHECK(static_cast<float>(one++) == 1.0f);
  CHECK(static_cast<float>(--one) == 1.0f);
}

TEST_CASE("halves of pairs and bits have CUDA's names") {
  const __half2 a = __floats2half2_rn(1.0f, 2.0f), b = make_half2(__half(3.0f), __half(4.0f));
  CHECK(__high2float(__lows2half2(a, b)) == 3.0f);
  CHECK(__low2float(__highs2half2(a, b)) == 2.0f);
  CHECK(__half_raw(CUDART_INF_FP16).x == 0x7C00);
  CHECK(static_cast<float>(__half(__half_raw{0x3C00})) == 1.0f);
  CHECK(static_cast<float>(CUDART_ONE_BF16) == 1.0f);
  CHECK(static_cast<__half2_raw>(a).y == 0x4000);
  CHECK(__bfloat162float(__ushort_as_bfloat16(0x3F80)) == 1.0f);
  CHECK(__bfloat1622float2(__float2bfloat162_rn(2.5f)).y == 2.5f);
}

}  // namespace attn_diag::host

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfenv>
#include <climits>
#include <cmath>
#include <random>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

// The processor's own rounding is the oracle.
struct Directed {
  explicit Directed(int mode) { std::fesetround(mode); }
  ~Directed() { std::fesetround(FE_TONEAREST); }
};

template <class Operation>
float in_mode(int mode, Operation operation) {
  const Directed directed(mode);
  volatile float result = operation();
  return result;
}

class Floats {
 public:
  // All binades, and pairs that are close.
  float operator()() {
    const auto bits = static_cast<std::uint32_t>(x_engine());
    const float x = __uint_as_float(bits);
    return std::isfinite(x) ? x : 1.5f;
  }
  float moderate() { return std::ldexp(static_cast<float>(x_engine() % 0xFFFFFF) - 0x7FFFFF, -20); }

 private:
  std::mt19937 x_engine{7};
};

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

template <class T, class From>
void check_directed(T (*down)(From), T (*up)(From), T (*to_zero)(From), From x) {
  const float low = static_cast<float>(down(x)), high = static_cast<float>(up(x));
  const T nearest(x);
  CAPTURE(x, low, high);
  REQUIRE(static_cast<double>(low) <= static_cast<double>(x));
  REQUIRE(static_cast<double>(high) >= static_cast<double>(x));
  // Nothing lies between them: x itself, or two neighbours.
  const auto low_bits = static_cast<std::uint16_t>(T(low).x_bits);
  if (low != high)
    REQUIRE(static_cast<float>(__builtin_bit_cast(T, neighbour(low_bits, false))) == high);
  REQUIRE((same(low, static_cast<float>(nearest)) || same(high, static_cast<float>(nearest))));
  REQUIRE(same(static_cast<float>(to_zero(x)), x > 0 ? low : high));
}

}  // namespace

TEST_CASE("sums, products, quotients and roots round in the direction that they name") {
  Floats floats;
  for (int i = 0; i < 200000; ++i) {
    const bool close = i % 2 == 0;
    volatile float a = close ? floats.moderate() : floats();
    volatile float b = close ? floats.moderate() : floats();
    volatile float c = close ? floats.moderate() : floats();
    const float x = a, y = b, z = c;
    CAPTURE(x, y, z);
    REQUIRE(same(__fmul_rd(x, y), in_mode(FE_DOWNWARD, [&] { return a * b; })));
    REQUIRE(same(__fmul_rz(x, y), in_mode(FE_TOWARDZERO, [&] { return a * b; })));
    REQUIRE(same(__fadd_ru(x, y), in_mode(FE_UPWARD, [&] { return a + b; })));
    REQUIRE(same(__fsub_rz(x, y), in_mode(FE_TOWARDZERO, [&] { return a - b; })));
    REQUIRE(same(__fdiv_rd(x, y), in_mode(FE_DOWNWARD, [&] { return a / b; })));
    REQUIRE(same(__fdiv_ru(x, y), in_mode(FE_UPWARD, [&] { return a / b; })));
    REQUIRE(same(__frcp_rz(x), in_mode(FE_TOWARDZERO, [&] { return 1.0f / a; })));
    REQUIRE(same(__fmaf_rz(x, y, z), in_mode(FE_TOWARDZERO, [&] { return std::fma(a, b, c); })));
    REQUIRE(same(__fmaf_rd(x, y, z), in_mode(FE_DOWNWARD, [&] { return std::fma(a, b, c); })));
    volatile float positive = std::fabs(x);
    REQUIRE(same(__fsqrt_rd(positive), in_mode(FE_DOWNWARD, [&] { return std::sqrt(positive); })));
    REQUIRE(same(__fsqrt_ru(positive), in_mode(FE_UPWARD, [&] { return std::sqrt(positive); })));
  }
}

TEST_CASE("conversions between integers and floats round as they say, and saturate") {
  volatile long long large = (1ll << 60) + 1;
  CHECK(__ll2float_rd(large) == 0x1p60f);
  CHECK(__ll2float_ru(large) == 0x1.000002p60f);
  CHECK(__ll2float_rn((1ll << 60) + (1ll << 36) + 1) ==
        0x1.000002p60f);  // double would tie to even
  CHECK(__ull2float_rz(ULLONG_MAX) == 0x1.fffffep63f);
  CHECK(__uint2float_rn(0xFFFFFFFFu) == 0x1p32f);
  CHECK(__int2float_rd(-16777217) == -16777218.0f);
  CHECK(__double2float_rd(1.0 + 0x1p-40) == 1.0f);
  CHECK(__double2float_ru(1.0 + 0x1p-40) == 1.0f + 0x1p-23f);
  CHECK(__double2float_rz(1e300) == 0x1.fffffep127f);
  CHECK(__float2int_rn(3e9f) == INT_MAX);
  CHECK(__float2int_rz(-3e9f) == INT_MIN);
  CHECK(__float2uint_rz(-1.5f) == 0);
  CHECK(__float2uint_rn(4294967040.0f) == 4294967040u);
  CHECK(__float2int_rn(NAN) == 0);
  CHECK(__float2ll_rn(NAN) == LLONG_MIN);
  CHECK(__double2ll_rd(-2.5) == -3);
  CHECK(__double2uint_ru(2.1) == 3);
  CHECK(__hiloint2double(__double2hiint(-1.75), __double2loint(-1.75)) == -1.75);
}

TEST_CASE("16-bit types round in the direction that they name") {
  Floats floats;
  for (int i = 0; i < 100000; ++i) {
    const float x = i % 2 == 0 ? floats.moderate() : floats();
    check_directed<__half, float>(__float2half_rd, __float2half_ru, __float2half_rz, x);
    check_directed<__nv_bfloat16, float>(__float2bfloat16_rd, __float2bfloat16_ru,
                                         __float2bfloat16_rz, x);
    const int n = static_cast<int>(x < 2e6f && x > -2e6f ? x * 1000 : 77777) % 70000;
    check_directed<__half, int>(__int2half_rd, __int2half_ru, __int2half_rz, n);
  }
  CHECK(static_cast<float>(__float2half_rz(1e6f)) == 65504.0f);
  CHECK(__hisinf(__float2half_rn(1e6f)) == 1);
  CHECK(__half_as_ushort(__float2half_rd(-1e-10f)) == 0x8001);
  CHECK(__half_as_ushort(__float2half_ru(-1e-10f)) == 0x8000);
  CHECK(__half2int_rd(__half(-2.5f)) == -3);
  CHECK(__half2short_rz(__ushort_as_half(0x7C00)) == 32767);
  CHECK(__bfloat162uint_rn(__nv_bfloat16(-1.0f)) == 0);
  CHECK(__half2uchar_rz(__half(300.0f)) == 255);
  CHECK(__half(2049ll).x_bits == __half(2048.0f).x_bits);
}

}  // namespace attn_diag::host

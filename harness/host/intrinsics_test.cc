#include <cuda_runtime.h>
#include <math_constants.h>

#include <cmath>
#include <cstddef>
#include <type_traits>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

const float kInfinity = CUDART_INF_F;

}  // namespace

TEST_CASE(
    "__expf is within 2 + 1.173 |x| units of 2^-24 of the exact result, over its whole range") {
  double worst = 0, worst_allowed = 0;
  // Every 37th float from -87.3 (the smallest normal result) to 88.7, both signs, all binades.
  for (std::uint32_t bits = 0x30000000u; bits < __float_as_uint(88.72f); bits += 37) {
    for (const float x : {__uint_as_float(bits), -__uint_as_float(bits)}) {
      if (x < -87.3f) continue;
      const double exact = std::exp(static_cast<double>(x));
      const double error = std::fabs(__expf(x) - exact) / exact * 0x1p24;
      worst = std::max(worst, error);
      worst_allowed = std::max(worst_allowed, error / (2.0 + 1.173 * std::fabs(x)));
    }
  }
  CAPTURE(worst);
  CHECK(worst_allowed <= 1.0);
  CHECK(worst <= 2.0);  // what intrinsics.h promises: 2^-23
}

TEST_CASE("__expf has subnormal results, limits and NaN as exp has") {
  for (float x = -87.5f; x > -103.0f; x -= 0.37f) {
    CAPTURE(x);
    CHECK(std::fabs(__expf(x) - std::exp(static_cast<double>(x))) <= 0x1p-149);
  }
  CHECK(__expf(0.0f) == 1.0f);
  CHECK(__expf(-0.0f) == 1.0f);
  CHECK(__expf(-110.0f) == 0.0f);
  CHECK(__expf(-kInfinity) == 0.0f);
  CHECK(__expf(89.0f) == kInfinity);
  CHECK(__expf(kInfinity) == kInfinity);
  CHECK(std::isnan(__expf(CUDART_NAN_F)));
}

TEST_CASE("bit casts and bit counts are CUDA's") {
  CHECK(__float_as_int(-0.0f) == static_cast<int>(0x80000000u));
  CHECK(__int_as_float(0x3F800000) == 1.0f);
  CHECK(__float_as_uint(1.0f) == 0x3F800000u);
  CHECK(__uint_as_float(0x7F800000u) == kInfinity);
  CHECK(__longlong_as_double(__double_as_longlong(1.25)) == 1.25);
  CHECK(__popc(0xF0F0u) == 8);
  CHECK(__popcll(~0ull) == 64);
  CHECK(__clz(1) == 31);
  CHECK(__clz(0) == 32);
  CHECK(__clzll(1) == 63);
  CHECK(__ffs(0) == 0);
  CHECK(__ffs(8) == 4);
  CHECK(__ffsll(1ll << 40) == 41);
  CHECK(__brev(1u) == 0x80000000u);
  CHECK(__brev(0x12345678u) == 0x1E6A2C48u);
  CHECK(__mulhi(1 << 30, 1 << 30) == 1 << 28);
  CHECK(__umulhi(0xFFFFFFFFu, 0xFFFFFFFFu) == 0xFFFFFFFEu);
}

TEST_CASE("rounding arithmetic and its conversions are CUDA's") {
  CHECK(__fmaf_rn(1.0f + 0x1p-12f, 1.0f - 0x1p-12f, -1.0f) == -0x1p-24f);  // exact, then rounded
  CHECK(__fdividef(1.0f, 3.0f) == 1.0f / 3.0f);
  CHECK(__frcp_rn(3.0f) == 1.0f / 3.0f);
  CHECK(__fsqrt_rn(2.0f) == std::sqrt(2.0f));
  CHECK(rsqrtf(4.0f) == 0.5f);
  CHECK(rsqrtf(0.0f) == kInfinity);
  CHECK(__saturatef(1.5f) == 1.0f);
  CHECK(__saturatef(CUDART_NAN_F) == 0.0f);
  CHECK(__float2int_rn(2.5f) == 2);
  CHECK(__float2int_rn(3.5f) == 4);
  CHECK(__float2int_rz(-2.7f) == -2);
  CHECK(__float2int_rd(-2.1f) == -3);
  CHECK(__float2int_ru(2.1f) == 3);
  CHECK(std::fabs(__logf(10.0f) - 2.302585093f) <= 2.4e-7f);
  CHECK(__logf(0.0f) == -kInfinity);
}

TEST_CASE("min and max of a number and a NaN are the number") {
  const float nan = CUDART_NAN_F;
  CHECK(fmaxf(nan, 1.0f) == 1.0f);
  CHECK(fmaxf(1.0f, nan) == 1.0f);
  CHECK(fminf(nan, 1.0f) == 1.0f);
  CHECK(fminf(1.0f, nan) == 1.0f);
  CHECK(std::isnan(fmaxf(nan, nan)));
  CHECK(fmaxf(-kInfinity, -kInfinity) == -kInfinity);
  CHECK(::max(2.0, 3.0) == 3.0);
  CHECK(::min(2, 3) == 2);
  CHECK(::max(2u, 3u) == 3u);
}

TEST_CASE("vector types have CUDA's sizes and alignments") {
  STATIC_REQUIRE(sizeof(float3) == 12);
  STATIC_REQUIRE(alignof(float3) == 4);
  STATIC_REQUIRE(alignof(float2) == 8);
  STATIC_REQUIRE(alignof(float4) == 16);
  STATIC_REQUIRE(alignof(int4) == 16);
  STATIC_REQUIRE(alignof(double2) == 16);
  STATIC_REQUIRE(alignof(double4) == 16);
  STATIC_REQUIRE(sizeof(double4) == 32);
  STATIC_REQUIRE(alignof(uchar4) == 4);
  STATIC_REQUIRE(alignof(short2) == 4);
  STATIC_REQUIRE(alignof(longlong2) == 16);
  STATIC_REQUIRE(std::is_trivial_v<float4>);
  const float4 v = make_float4(1, 2, 3, 4);
  CHECK((v.x == 1 && v.y == 2 && v.z == 3 && v.w == 4));
  const dim3 d(7);
  CHECK((d.x == 7 && d.y == 1 && d.z == 1));
}

}  // namespace attn_diag::host

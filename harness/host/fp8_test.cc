#include <cuda_fp8.h>

#include <cmath>
#include <cstring>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

float value_of(unsigned char bits, __nv_fp8_interpretation_t format) {
  return static_cast<float>(__half(__nv_cvt_fp8_to_halfraw(bits, format)));
}

// From the definition of the format: sign, exponent, fraction.
float defined_value(int bits, int fraction_bits, int bias) {
  const int exponent = (bits & 0x7F) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), 1 - bias - fraction_bits)
                              : std::ldexp(static_cast<float>(fraction + (1 << fraction_bits)),
                                           exponent - bias - fraction_bits);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace

TEST_CASE("every pattern of 8 bits has its format's value") {
  for (int bits = 0; bits < 256; ++bits) {
    CAPTURE(bits);
    const float e4m3 = value_of(static_cast<unsigned char>(bits), __NV_E4M3);
    const float e5m2 = value_of(static_cast<unsigned char>(bits), __NV_E5M2);
    if ((bits & 0x7F) == 0x7F)
      CHECK(std::isnan(e4m3));
    else
      CHECK(e4m3 == defined_value(bits, 3, 7));
    if ((bits & 0x7F) > 0x7C)
      CHECK(std::isnan(e5m2));
    else if ((bits & 0x7F) == 0x7C)
      CHECK(std::isinf(e5m2));
    else
      CHECK(e5m2 == defined_value(bits, 2, 15));
  }
}

TEST_CASE("conversion to 8 bits takes the nearest number, of two the even one") {
  for (const auto format : {__NV_E4M3, __NV_E5M2}) {
    const unsigned char most = format == __NV_E4M3 ? 0x7E : 0x7B;
    for (unsigned char bits = 0; bits < most; ++bits) {
      const float low = value_of(bits, format);
      const float high = value_of(static_cast<unsigned char>(bits + 1), format);
      const float middle = (low + high) / 2;  // exact
      const unsigned char even = bits % 2 == 0 ? bits : static_cast<unsigned char>(bits + 1);
      CAPTURE(format, low, high);
      const auto rounded = [&](float x) { return __nv_cvt_float_to_fp8(x, __NV_NOSAT, format); };
      CHECK(rounded(low) == bits);
      CHECK(rounded(middle) == even);
      CHECK(rounded(-middle) == (even | 0x80));
      CHECK(rounded(std::nextafter(middle, high)) == bits + 1);
      CHECK(rounded(std::nextafter(middle, low)) == bits);
    }
  }
}

TEST_CASE("what 8 bits cannot hold saturates, or overflows, as it is asked") {
  const float infinity = INFINITY;
  for (const float x : {449.0f, 465.0f, 1e6f, infinity})
    CHECK(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3) == 0x7E);
  CHECK(__nv_cvt_float_to_fp8(464.0f, __NV_NOSAT, __NV_E4M3) == 0x7E);  // a tie
  CHECK(__nv_cvt_float_to_fp8(465.0f, __NV_NOSAT, __NV_E4M3) == 0x7F);
  CHECK(__nv_cvt_float_to_fp8(-infinity, __NV_NOSAT, __NV_E5M2) == 0xFC);
  CHECK(__nv_cvt_float_to_fp8(-1e9f, __NV_SATFINITE, __NV_E5M2) == 0xFB);
  CHECK(__nv_cvt_float_to_fp8(NAN, __NV_SATFINITE, __NV_E4M3) == 0x7F);
  CHECK(__nv_cvt_float_to_fp8(-0.0f, __NV_SATFINITE, __NV_E4M3) == 0x80);
  CHECK(__nv_cvt_float_to_fp8(0.0f, __NV_SATFINITE, __NV_E5M2) == 0);
}

TEST_CASE("the 8-bit types convert, alone and packed") {
  CHECK(static_cast<float>(__nv_fp8_e4m3(1.0625f)) == 1.0f);
  CHECK(static_cast<float>(__nv_fp8_e5m2(__half(3.0f))) == 3.0f);
  CHECK(static_cast<int>(__nv_fp8_e4m3(-17)) == -16);
  const __nv_fp8x2_e4m3 pair(make_float2(1.5f, -2.0f));
  CHECK(pair.__x == 0xC03C);
  CHECK(__high2float(static_cast<__half2>(pair)) == -2.0f);
  const __nv_fp8x4_e5m2 four(make_float4(1, 2, 3, 4));
  const auto back = static_cast<float4>(four);
  CHECK((back.x == 1 && back.y == 2 && back.z == 3 && back.w == 4));
  unsigned char bytes[4];
  std::memcpy(bytes, &four, 4);
  CHECK(bytes[0] == __nv_fp8_e5m2(1.0f).__x);
  CHECK(sizeof(__nv_fp8_e4m3) == 1);
}

}  // namespace attn_diag::host

#include "reference/testing/float_types.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace attn_diag::reference::testing {
namespace {

struct Format {
  int precision;          // bits of the significand, the hidden one included
  int smallest, largest;  // exponents e of normal numbers 2^e
};
Format format_of(DType type) {
  switch (type) {
    case DType::kFp16:
      return {11, -14, 15};
    case DType::kBf16:
      return {8, -126, 127};
    case DType::kFp32:
      return {24, -126, 127};
    case DType::kFp64:
      break;
  }
  return {53, -1022, 1023};
}

// The bits of a value that the type holds exactly.
std::uint64_t encode(DType type, double x) {
  if (type == DType::kFp64) return std::bit_cast<std::uint64_t>(x);
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (type == DType::kFp32) return single;
  if (type == DType::kBf16) return single >> 16;
  const std::uint64_t sign = std::signbit(x) ? 0x8000 : 0;
  const double a = std::fabs(x);
  if (std::isnan(x)) return 0x7e00;
  if (std::isinf(x)) return sign | 0x7c00;
  if (a < 0x1p-14) return sign | static_cast<std::uint64_t>(a * 0x1p24);
  const int e = std::ilogb(a);
  return sign | (static_cast<std::uint64_t>(e + 15) << 10 |
                 (static_cast<std::uint64_t>(std::ldexp(a, 10 - e)) & 0x3ff));
}

}  // namespace

double round_to(DType type, double x) {
  if (type == DType::kFp64 || x == 0 || !std::isfinite(x)) return x;
  if (type == DType::kFp32) return static_cast<float>(x);
  const Format f = format_of(type);
  const int e = std::max(std::ilogb(x), f.smallest);
  const double unit = std::ldexp(1.0, e - f.precision + 1);
  const double rounded = std::nearbyint(x / unit) * unit;
  const double largest = std::ldexp(2 - std::ldexp(1.0, 1 - f.precision), f.largest);
  return std::fabs(rounded) > largest ? std::copysign(INFINITY, x) : rounded;
}

void store(DType type, double x, std::byte* to) {
  const std::uint64_t bits = encode(type, round_to(type, x));
  for (std::size_t i = 0; i < size_of(type); ++i)
    to[i] = static_cast<std::byte>(bits >> (8 * i) & 0xff);
}

double load(DType type, const std::byte* from) {
  if (type == DType::kFp64) {
    double x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  if (type == DType::kFp32) {
    float x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  if (type == DType::kBf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const int e = bits >> 10 & 0x1f, f = bits & 0x3ff;
  const double a = e == 31  ? (f == 0 ? INFINITY : NAN)
                   : e == 0 ? std::ldexp(f, -24)
                            : std::ldexp(1024 + f, e - 25);
  return (bits & 0x8000) != 0 ? -a : a;
}

}  // namespace attn_diag::reference::testing

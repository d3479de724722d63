// Bit operations of inline PTX.
#pragma once

#include "attn_diag_host/integer_intrinsics.h"
#include "attn_diag_host/ptx_values.h"

namespace attn_diag::host::ptx {

// By the width and more, all bits are gone.
template <class T>
T shl(T a, std::uint32_t by) {
  return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<Bits<T>>(a) << by);
}
template <class T>
T shr(T a, std::uint32_t by) {
  if (by >= 8 * sizeof(T)) return a < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> by);
}
inline std::uint32_t shf_l(std::uint32_t low, std::uint32_t high, std::uint32_t by, bool clamp) {
  const std::uint32_t n = clamp ? (by < 32 ? by : 32) : by & 31u;
  const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
  return static_cast<std::uint32_t>((both << n) >> 32);
}
inline std::uint32_t shf_r(std::uint32_t low, std::uint32_t high, std::uint32_t by, bool clamp) {
  const std::uint32_t n = clamp ? (by < 32 ? by : 32) : by & 31u;
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> n);
}

template <class T>
T bfe(T a, std::uint32_t position, std::uint32_t length) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  const std::uint32_t from = position & 255u, count = length & 255u;
  if (count == 0) return 0;
  const std::uint64_t source = static_cast<Bits<T>>(a);
  const std::uint32_t last = from + count - 1 < kBits - 1 ? from + count - 1 : kBits - 1;
  const bool sign = std::is_signed_v<T> && (source >> last & 1u) != 0;
  std::uint64_t bits = 0;
  for (std::uint32_t i = 0; i < kBits; ++i) {
    const bool inside = i < count && from + i < kBits;
    const bool bit = inside ? (source >> (from + i) & 1u) != 0 : sign;
    bits |= static_cast<std::uint64_t>(bit) << i;
  }
  return static_cast<T>(bits);
}
template <class T>
T bfi(T inserted, T into, std::uint32_t position, std::uint32_t length) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  const std::uint32_t from = position & 255u, count = length & 255u;
  Bits<T> bits = static_cast<Bits<T>>(into);
  for (std::uint32_t i = 0; i < count && from + i < kBits; ++i) {
    const Bits<T> one = static_cast<Bits<T>>(Bits<T>{1} << (from + i));
    bits =
        static_cast<Bits<T>>(static_cast<Bits<T>>(inserted) >> i & 1u ? bits | one : bits & ~one);
  }
  return static_cast<T>(bits);
}
inline std::uint32_t brev(std::uint32_t x) { return ::__brev(x); }
inline std::uint64_t brev(std::uint64_t x) { return ::__brevll(x); }
inline std::uint32_t clz(std::uint32_t x) {
  return x == 0 ? 32u : static_cast<std::uint32_t>(__builtin_clz(x));
}
inline std::uint32_t clz(std::uint64_t x) {
  return x == 0 ? 64u : static_cast<std::uint32_t>(__builtin_clzll(x));
}
inline std::uint32_t popc(std::uint32_t x) {
  return static_cast<std::uint32_t>(__builtin_popcount(x));
}
inline std::uint32_t popc(std::uint64_t x) {
  return static_cast<std::uint32_t>(__builtin_popcountll(x));
}

// Bytes of {b, a} by selectors of four bits; the fourth bit takes the sign of the byte instead.
inline std::uint32_t prmt(std::uint32_t a, std::uint32_t b, std::uint32_t selectors) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(b) << 32 | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t selector = selectors >> (4 * i) & 15u;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (selector & 7u))) & 255u;
    if ((selector & 8u) != 0) byte = (byte & 128u) != 0 ? 255u : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
// Bit (a, b, c) of the table, for every bit of the three.
inline std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if ((table >> i & 1u) == 0) continue;
    result |= ((i & 4u) != 0 ? a : ~a) & ((i & 2u) != 0 ? b : ~b) & ((i & 1u) != 0 ? c : ~c);
  }
  return result;
}

}  // namespace attn_diag::host::ptx

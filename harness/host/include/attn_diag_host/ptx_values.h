// Registers of inline PTX: unsigned integers of 8 to 64 bits, predicates bool. Instructions read them as
// the type they name.
#pragma once

#include <type_traits>

#include "attn_diag_host/small_float.h"

namespace attn_diag::host::ptx {

struct F16 {
  std::uint16_t bits;
  float value() const { return half_value(bits); }
  static F16 of(float x) { return {half_bits(x)}; }
  static F16 of_double(double x) { return {half_bits(round_to_odd(x))}; }
};
struct Bf16 {
  std::uint16_t bits;
  float value() const { return bfloat16_value(bits); }
  static Bf16 of(float x) { return {bfloat16_bits(x)}; }
  static Bf16 of_double(double x) { return {bfloat16_bits(round_to_odd(x))}; }
};
template <class T>
struct Pair {
  T low, high;
};
using F16x2 = Pair<F16>;
using Bf16x2 = Pair<Bf16>;

template <class T>
inline constexpr bool is_small = std::is_same_v<T, F16> || std::is_same_v<T, Bf16>;
template <class T>
inline constexpr bool is_pair = std::is_same_v<T, F16x2> || std::is_same_v<T, Bf16x2>;

template <std::size_t kBytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using Type = std::uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = std::uint64_t;
};
template <class T>
using Bits = typename BitsOf<sizeof(T)>::Type;

// A register, or a constant, as T: its low bits. Decimal fractions are converted.
template <class T, class R>
constexpr T get(R from) {
  if constexpr (std::is_same_v<T, bool>)
    return from != 0;
  else if constexpr (std::is_floating_point_v<R>)
    return static_cast<T>(from);
  else
    return __builtin_bit_cast(T, static_cast<Bits<T>>(from));
}

// Integers narrower than the register are extended by their sign.
template <class R, class T>
void set(R& to, T value) {
  if constexpr (std::is_same_v<R, bool>)
    to = static_cast<bool>(value);
  else if constexpr (std::is_integral_v<T>)
    to = static_cast<R>(value);
  else
    to = static_cast<R>(__builtin_bit_cast(Bits<T>, value));
}

// {a, b}: the first is the low part.
template <class R, class... Rest>
auto pack(R first, Rest... rest) {
  constexpr std::size_t kParts = 1 + sizeof...(rest);
  using Whole = typename BitsOf<sizeof(R) * kParts>::Type;
  const Whole parts[] = {static_cast<Whole>(first), static_cast<Whole>(static_cast<R>(rest))...};
  Whole whole = 0;
  for (std::size_t i = 0; i < kParts; ++i)
    whole |= static_cast<Whole>(parts[i] << (8 * sizeof(R) * i));
  return whole;
}
template <class R, class T>
void unpack(R& part, T whole, int i) {
  const auto bits = __builtin_bit_cast(Bits<T>, whole);
  part = static_cast<R>(bits >> (8 * sizeof(R) * static_cast<unsigned>(i)));
}

// An operand of the statement under a constraint, as nvcc takes it.
template <char kConstraint, class T>
auto read(const T& value) {
  constexpr std::size_t kBytes = kConstraint == 'h'                         ? 2
                                 : kConstraint == 'r' || kConstraint == 'f' ? 4
                                                                            : 8;
  static_assert(
      sizeof(T) == kBytes,
      "asm operand: its size does not match its constraint (h 2 bytes, r and f 4, l and d 8)");
  static_assert(kConstraint != 'f' || std::is_same_v<T, float>,
                "asm operand: constraint f needs a float");
  static_assert(kConstraint != 'd' || std::is_same_v<T, double>,
                "asm operand: constraint d needs a double");
  typename BitsOf<kBytes>::Type bits;
  __builtin_memcpy(&bits, &value, kBytes);
  return bits;
}
template <char kConstraint, class T, class R>
void write(T& value, R bits) {
  static_assert(
      sizeof(T) == sizeof(R),
      "asm operand: its size does not match its constraint (h 2 bytes, r and f 4, l and d 8)");
  static_assert(kConstraint != 'f' || std::is_same_v<T, float>,
                "asm operand: constraint f needs a float");
  static_assert(kConstraint != 'd' || std::is_same_v<T, double>,
                "asm operand: constraint d needs a double");
  __builtin_memcpy(&value, &bits, sizeof(T));
}
template <class T>
constexpr std::int64_t constant(T value) {
  return static_cast<std::int64_t>(value);
}

}  // namespace attn_diag::host::ptx

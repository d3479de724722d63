// The fast way of multiply_accumulate, in vectors. Included by one source for each instruction set, which
// is compiled for it: hence all in an unnamed namespace.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "harness/host/mma_arithmetic.h"

namespace attn_diag::host {

// What those sources define.
using MultiplyRows = void(const float* a, const float* b, const float* c, float* d, unsigned m,
                          unsigned n, const MmaOrder& order);
MultiplyRows multiply_rows_avx2, multiply_rows_avx512;  // the latter for n of 16 and 32
void widen_halves_f16c(const std::uint16_t* from, float* to, unsigned count);

namespace {

constexpr int kFractionBits = 23;
constexpr std::int32_t kBias = 127;
// Instead of the exponents of zero, and of infinity and NaN: stay far from others in sums of two.
constexpr std::int32_t kNoExponent = -1000, kSpecialExponent = 3000;
// Smaller sums of magnitudes are left to the slow way, where scaling cannot overflow and products of
// bfloat16 are exact even if float would make them subnormal.
constexpr std::int32_t kLeastExponent = 31;  // biased: 2^-96
constexpr std::int32_t kMostExponent = 253;  // products of more may not be floats
constexpr unsigned kMostCells = 32 * kMmaDepth;
// kGroup products of at most 2^28 each, in units of the last place kept, fit an int.
constexpr unsigned kGroup = 4;
// The largest int that is not rounded to more than an int holds.
constexpr std::uint32_t kLargestTotal = 0x7FFFFF00u;

template <int kWidth>
struct Vector {
  typedef float Floats __attribute__((vector_size(kWidth * 4)));
  typedef std::int32_t Ints __attribute__((vector_size(kWidth * 4)));
  typedef std::uint32_t Bits __attribute__((vector_size(kWidth * 4)));
};

// The biased exponent; 0 for a subnormal.
constexpr std::int32_t exponent_of(float x) {
  const std::uint32_t size = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu;
  const auto exponent = static_cast<std::int32_t>(size >> kFractionBits);
  return size == 0 ? kNoExponent : exponent == 255 ? kSpecialExponent : exponent;
}

// A row of a, (16), and columns of b, (16, n), with their exponents; those of a without the bias.
struct Factors {
  const float* a;
  const std::int32_t* a_exponent;
  const float* b;
  const std::int32_t* b_exponent;
  unsigned n;
};

// Neighbours of a row of d. `slow` becomes nonzero in those that must be done the slow way; what d holds
// there is meaningless. Additions are of integers: no order or instruction set changes them.
template <int kWidth>
inline void neighbours(const Factors& x, const float* c, float* d, const MmaOrder& order,
                       std::int32_t* slow) {
  using Floats = typename Vector<kWidth>::Floats;
  using Ints = typename Vector<kWidth>::Ints;
  using Bits = typename Vector<kWidth>::Bits;
  Floats sum;
  std::memcpy(&sum, c, sizeof sum);
  Ints bad{};
  const Bits magnitude = Bits{} + 0x7FFFFFFFu;
  const auto kept = static_cast<std::int32_t>(kFractionBits + order.extra_bits);
  for (unsigned first = 0; first < kMmaDepth; first += order.block) {
    const Bits size_of_sum = reinterpret_cast<Bits>(sum) & magnitude;
    const Ints zero = reinterpret_cast<Ints>(size_of_sum) == 0;
    Ints top =
        (reinterpret_cast<Ints>(size_of_sum >> kFractionBits) & ~zero) | (kNoExponent & zero);
    Floats product[kMmaDepth];
    for (unsigned t = 0; t < order.block; ++t) {
      const unsigned k = order.terms[first + t];
      Floats row;
      Ints exponent;
      std::memcpy(&row, x.b + k * x.n, sizeof row);
      std::memcpy(&exponent, x.b_exponent + k * x.n, sizeof exponent);
      product[t] = row * x.a[k];
      exponent += x.a_exponent[k];
      top = exponent > top ? exponent : top;
    }
    const Ints low = top<kLeastExponent, high = top> kMostExponent;
    bad |= (low & (top > kNoExponent / 2)) | high;
    const Ints exponent = (top & ~(low | high)) | (low & (Ints{} + kLeastExponent)) |
                          (high & (Ints{} + kMostExponent));
    const Floats scale = reinterpret_cast<Floats>((254 + kept - exponent) << kFractionBits);
    const Floats unscale = reinterpret_cast<Floats>((exponent - kept) << kFractionBits);
    Bits total = reinterpret_cast<Bits>(__builtin_convertvector(sum * scale, Ints));
    for (unsigned t = 0; t < order.block; t += kGroup) {
      Bits group{};
      for (unsigned u = t; u < t + kGroup; ++u)
        group += reinterpret_cast<Bits>(__builtin_convertvector(product[u] * scale, Ints));
      const Bits next = total + group;
      bad |= reinterpret_cast<Ints>((total ^ next) & (group ^ next)) >> 31;  // overflow
      total = next;
    }
    // To float, towards zero: to nearest, then one place back if that was away from zero.
    const Bits sign = reinterpret_cast<Bits>(reinterpret_cast<Ints>(total) >> 31);
    const Bits size = (total ^ sign) - sign;
    bad |= reinterpret_cast<Ints>(size + (0x80000000u - kLargestTotal)) >> 31;
    Floats nearest = __builtin_convertvector(reinterpret_cast<Ints>(size), Floats);
    const Ints above = __builtin_convertvector(nearest, Ints) > reinterpret_cast<Ints>(size);
    nearest = reinterpret_cast<Floats>(reinterpret_cast<Ints>(nearest) + above) * unscale;
    sum = reinterpret_cast<Floats>(reinterpret_cast<Bits>(nearest) | (sign & ~magnitude));
  }
  std::memcpy(d, &sum, sizeof sum);
  std::memcpy(slow, &bad, sizeof bad);
}

template <int kWidth>
inline void all_rows(const float* a, const float* b, const float* c, float* d, unsigned m,
                     unsigned n, const MmaOrder& order) {
  alignas(64) std::int32_t a_exponent[kMostCells], b_exponent[kMostCells];
  for (unsigned i = 0; i < m * kMmaDepth; ++i) a_exponent[i] = exponent_of(a[i]) - kBias;
  for (unsigned i = 0; i < n * kMmaDepth; ++i) b_exponent[i] = exponent_of(b[i]);
  for (unsigned i = 0; i < m; ++i)
    for (unsigned j = 0; j < n; j += kWidth) {
      const Factors x{a + i * kMmaDepth, a_exponent + i * kMmaDepth, b + j, b_exponent + j, n};
      const float* from = c + i * n + j;
      float result[kWidth];
      std::int32_t slow[kWidth];
      neighbours<kWidth>(x, from, result, order, slow);
      std::int32_t any = 0;
      for (const std::int32_t s : slow) any |= s;
      if (any != 0) [[unlikely]]
        for (unsigned l = 0; l < kWidth; ++l)
          if (slow[l] != 0) result[l] = multiply_accumulate_one(x.a, x.b + l, n, from[l], order);
      std::memcpy(d + i * n + j, result, sizeof result);
    }
}

}  // namespace
}  // namespace attn_diag::host

#include "harness/host/mma_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "harness/host/random.h"

namespace attn_diag::host {
namespace {

constexpr int kFractionBits = 23;
constexpr std::int32_t kBias = 127;
constexpr std::int32_t kNoExponent = -1000;  // of zero
// Smaller sums of magnitudes are left to the slow way, where scaling cannot overflow and products of
// bfloat16 are exact even if float would make them subnormal.
constexpr std::int32_t kLeastExponent = 31;  // biased: 2^-96

// A block whose magnitudes sum to more, in units of the last place kept, might not fit an int.
constexpr float kLargestTotal = 0x1.FFFFp30f;

constexpr int kWidth = 8;
typedef float Floats __attribute__((vector_size(kWidth * 4)));
typedef std::int32_t Ints __attribute__((vector_size(kWidth * 4)));
typedef std::uint32_t Bits __attribute__((vector_size(kWidth * 4)));

// Biased exponents. Of zero kNoExponent, which stays far below others in sums of two; of a subnormal 0.
__attribute__((always_inline)) inline Ints exponents_of(Floats x) {
  const Bits size = reinterpret_cast<Bits>(x) & (Bits{} + 0x7FFFFFFFu);
  const Ints zero = reinterpret_cast<Ints>(size) == 0;
  return (reinterpret_cast<Ints>(size >> kFractionBits) & ~zero) | (kNoExponent & zero);
}

// Eight neighbours of a row of d at once. `slow` becomes nonzero in those that must be done the slow way;
// what d holds there is meaningless. Additions are of integers: no order or instruction set changes them.
__attribute__((always_inline)) inline void eight(const float* a, const float* b, const float* c,
                                                 float* d, unsigned n, const MmaOrder& order,
                                                 std::int32_t* slow) {
  Floats sum;
  std::memcpy(&sum, c, sizeof sum);
  Ints bad{};
  const Bits magnitude = Bits{} + 0x7FFFFFFFu;
  const auto kept = static_cast<std::int32_t>(kFractionBits + order.extra_bits);
  for (unsigned first = 0; first < kMmaDepth; first += order.block) {
    Floats product[kMmaDepth];
    Ints top = exponents_of(sum);
    bad |= top == 255;
    for (unsigned t = 0; t < order.block; ++t) {
      const unsigned k = order.terms[first + t];
      Floats row;
      std::memcpy(&row, b + k * n, sizeof row);
      product[t] = row * a[k];
      bad |= exponents_of(product[t]) == 255;
      const Ints size = exponents_of(row) + (exponents_of(Floats{} + a[k]) - kBias);
      const Ints more = size > top;
      top = (size & more) | (top & ~more);
    }
    const Ints low = top < kLeastExponent;
    bad |= low & (top > kNoExponent / 2);
    const Ints exponent = (top & ~low) | (low & (Ints{} + kLeastExponent));
    const Floats scale = reinterpret_cast<Floats>((254 + kept - exponent) << kFractionBits);
    const Floats unscale = reinterpret_cast<Floats>((exponent - kept) << kFractionBits);
    Floats sizes = reinterpret_cast<Floats>(reinterpret_cast<Bits>(sum) & magnitude) * scale;
    for (unsigned t = 0; t < order.block; ++t)
      sizes += reinterpret_cast<Floats>(reinterpret_cast<Bits>(product[t]) & magnitude) * scale;
    bad |= ~(sizes < kLargestTotal);
    Bits total = reinterpret_cast<Bits>(__builtin_convertvector(sum * scale, Ints));
    for (unsigned t = 0; t < order.block; ++t)
      total += reinterpret_cast<Bits>(__builtin_convertvector(product[t] * scale, Ints));
    // To float, towards zero: to nearest, then one place back if that was away from zero.
    const Bits sign = reinterpret_cast<Bits>(reinterpret_cast<Ints>(total) >> 31);
    const Ints size = reinterpret_cast<Ints>((total ^ sign) - sign);
    Floats nearest = __builtin_convertvector(size, Floats);
    const Ints above = __builtin_convertvector(nearest, Ints) > size;
    nearest = reinterpret_cast<Floats>(reinterpret_cast<Ints>(nearest) + above) * unscale;
    sum = reinterpret_cast<Floats>(reinterpret_cast<Bits>(nearest) | (sign & ~magnitude));
  }
  std::memcpy(d, &sum, sizeof sum);
  std::memcpy(slow, &bad, sizeof bad);
}

__attribute__((always_inline)) inline void all_rows(const float* a, const float* b, const float* c,
                                                    float* d, unsigned m, unsigned n,
                                                    const MmaOrder& order) {
  for (unsigned i = 0; i < m; ++i)
    for (unsigned j = 0; j < n; j += kWidth) {
      const float* from = c + i * n + j;
      float result[kWidth];
      std::int32_t slow[kWidth];
      eight(a + i * kMmaDepth, b + j, from, result, n, order, slow);
      std::int32_t any = 0;
      for (const std::int32_t s : slow) any |= s;
      if (any != 0) [[unlikely]]
        for (unsigned l = 0; l < kWidth; ++l)
          if (slow[l] != 0)
            result[l] = multiply_accumulate_one(a + i * kMmaDepth, b + j + l, n, from[l], order);
      std::memcpy(d + i * n + j, result, sizeof result);
    }
}

void baseline(const float* a, const float* b, const float* c, float* d, unsigned m, unsigned n,
              const MmaOrder& order) {
  all_rows(a, b, c, d, m, n, order);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void with_avx2(const float* a, const float* b, const float* c,
                                               float* d, unsigned m, unsigned n,
                                               const MmaOrder& order) {
  all_rows(a, b, c, d, m, n, order);
}
const bool g_has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif

// x cut to a float, towards zero; beyond the largest float, infinity.
float cut_to_float(double x) {
  const auto nearest = static_cast<float>(x);
  const bool cut = std::fabs(static_cast<double>(nearest)) <= std::fabs(x) || std::isnan(x);
  return cut || std::fabs(x) >= 0x1p128 ? nearest : std::nextafter(nearest, 0.0f);
}

}  // namespace

MmaOrder mma_order(std::uint64_t seed) {
  MmaOrder order;
  for (unsigned k = 0; k < kMmaDepth; ++k) order.terms[k] = static_cast<std::uint8_t>(k);
  if (seed == 0) return order;
  std::uint64_t state = seed;
  const auto below = [&](unsigned count) {
    state = mix(state);
    return static_cast<unsigned>(((state >> 32) * count) >> 32);
  };
  order.block = 4u << below(3);
  order.extra_bits = below(4);
  for (unsigned k = kMmaDepth; k > 1; --k) std::swap(order.terms[k - 1], order.terms[below(k)]);
  return order;
}

float multiply_accumulate_one(const float* a, const float* b, unsigned n, float c,
                              const MmaOrder& order) {
  double sum = c;
  for (unsigned first = 0; first < kMmaDepth; first += order.block) {
    double addend[kMmaDepth + 1];
    int top = sum == 0 ? kNoExponent : std::ilogb(sum);
    bool special = !std::isfinite(sum);
    addend[order.block] = sum;
    for (unsigned t = 0; t < order.block; ++t) {
      const unsigned k = order.terms[first + t];
      addend[t] = static_cast<double>(a[k]) * b[k * n];
      special = special || !std::isfinite(addend[t]);
      if (a[k] != 0 && b[k * n] != 0) top = std::max(top, std::ilogb(a[k]) + std::ilogb(b[k * n]));
    }
    double total = 0;
    if (special || top == kNoExponent) {
      for (unsigned t = 0; t <= order.block; ++t) total += addend[t];
    } else {
      const int last = top - kFractionBits - static_cast<int>(order.extra_bits);
      for (unsigned t = 0; t <= order.block; ++t) total += std::trunc(std::ldexp(addend[t], -last));
      total = std::ldexp(total, last);
    }
    sum = cut_to_float(total);
  }
  // The device's NaN.
  return std::isnan(sum) ? std::bit_cast<float>(0x7FFFFFFFu) : static_cast<float>(sum);
}

void multiply_accumulate(const float* a, const float* b, const float* c, float* d, unsigned m,
                         unsigned n, const MmaOrder& order) {
#if defined(__x86_64__)
  if (g_has_avx2) return with_avx2(a, b, c, d, m, n, order);
#endif
  baseline(a, b, c, d, m, n, order);
}

}  // namespace attn_diag::host

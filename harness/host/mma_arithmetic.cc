#include "harness/host/mma_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "attn_diag_host/small_float.h"
#include "harness/host/mma_rows.h"
#include "harness/host/random.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace attn_diag::host {
namespace {

#if defined(__x86_64__)
// Compilers differ on whether __builtin_cpu_supports knows it.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
const bool g_has_avx2 = __builtin_cpu_supports("avx2") != 0 && has_f16c();
const bool g_has_avx512 = g_has_avx2 && __builtin_cpu_supports("avx512f") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512dq") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
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
      if (!special && addend[t] != 0) top = std::max(top, std::ilogb(a[k]) + std::ilogb(b[k * n]));
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
  if (g_has_avx512 && n % 16 == 0) return multiply_rows_avx512(a, b, c, d, m, n, order);
  if (g_has_avx2) return multiply_rows_avx2(a, b, c, d, m, n, order);
#endif
  all_rows<8>(a, b, c, d, m, n, order);
}

void widen_halves(const std::uint16_t* from, float* to, unsigned count) {
#if defined(__x86_64__)
  if (g_has_avx2) return widen_halves_f16c(from, to, count);
#endif
  for (unsigned i = 0; i < count; ++i) to[i] = half_value(from[i]);
}

}  // namespace attn_diag::host

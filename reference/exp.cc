#include "reference/exp.h"

#include <bit>
#include <cstdint>

namespace attn_diag::reference {
namespace {

// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln(2)/2. The Taylor polynomial of degree 13
// leaves r^14/14! < 5e-18 of exp(r).
inline double exp_of(double x) {
  constexpr double kInvLn2 = 0x1.71547652b82fep+0;
  constexpr double kLn2High =
      0x1.62e42fefa39p-1;  // ends in 9 zero bits or more: n * kLn2High is exact up to rounding of r
  constexpr double kLn2Low = 0x1.de6af278ece60p-46;
  // Adding this leaves round(x / ln 2) in the low bits of the sum.
  constexpr double kRound = 0x1.8p52;
  const double rounded = x * kInvLn2 + kRound;
  const double n = rounded - kRound;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 1.0 / 2;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const double power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(rounded) + 1023) << 52);
  return x < -708.0 ? 0.0 : p * power;
}

}  // namespace

void exp_shifted(const double* x, std::size_t n, double shift, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = exp_of(x[i] - shift);
}

}  // namespace attn_diag::reference

#include "reference/exp.h"

#include <algorithm>
#include <limits>

#include "reference/vector.h"

namespace attn_diag::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln(2)/2. The Taylor polynomial of degree 13
// leaves r^14/14! < 5e-18 of exp(r).
inline Vector exp_of(Vector x) {
  constexpr double kInvLn2 = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fefap-1;  // 37 bits: n * kLn2High is exact
  constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
  // Adding this leaves round(x / ln 2) in the low bits of the sum.
  constexpr double kRound = 0x1.8p52;
  const Vector rounded = x * kInvLn2 + kRound;
  const Vector n = rounded - kRound;
  const Vector r = (x - n * kLn2High) - n * kLn2Low;
  Vector p = r * (1.0 / 6227020800) + 1.0 / 479001600;
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
  const Vector power =
      reinterpret_cast<Vector>((reinterpret_cast<IntVector>(rounded) + 1023) << 52);
  return x < -708.0 ? Vector{} : p * power;
}

// The last n < kLanes numbers of an array, filled up with -inf.
inline Vector load_rest(const double* x, std::size_t n) {
  double whole[kLanes];
  std::fill(whole, whole + kLanes, -kInf);
  std::copy_n(x, n, whole);
  return load(whole);
}

}  // namespace

double largest(const double* x, std::size_t n) {
  Vector most = broadcast(-kInf), nan = {};
  const auto take = [&](Vector v) {
    most = v > most ? v : most;
    nan = v == v ? nan : v;
  };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) take(load(x + i));
  if (i < n) take(load_rest(x + i, n - i));
  double result = -kInf;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (nan[lane] != nan[lane]) return nan[lane];
    result = std::max(result, most[lane]);
  }
  return result;
}

double exp_shifted(const double* x, std::size_t n, double shift, double* out) {
  Vector sum = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vector y = exp_of(load(x + i) - shift);
    sum += y;
    store(out + i, y);
  }
  if (i < n) {
    const Vector y = exp_of(load_rest(x + i, n - i) - shift);
    sum += y;
    for (std::size_t j = i; j < n; ++j) out[j] = y[j - i];
  }
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
  return total;
}

}  // namespace attn_diag::reference

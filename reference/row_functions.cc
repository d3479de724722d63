#include "reference/row_functions.h"

#include <algorithm>

#include "attn_diag/reference/vector.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
namespace {

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

// The last n < kLanes numbers of an array, filled up.
inline Vector load_rest(const double* x, std::size_t n, double fill) {
  double whole[kLanes];
  std::fill(whole, whole + kLanes, fill);
  std::copy_n(x, n, whole);
  return load(whole);
}

inline double sum_of(Vector v) {
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += v[lane];
  return total;
}

// A running maximum, NaN once NaN was taken.
struct Most {
  Vector most = broadcast(-kInf), nan = {};

  void take(Vector v) {
    most = v > most ? v : most;
    nan = v == v ? nan : v;
  }
  double get() const {
    double result = -kInf;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (nan[lane] != nan[lane]) return nan[lane];
      result = std::max(result, most[lane]);
    }
    return result;
  }
};

}  // namespace

double largest(const double* x, std::size_t n) {
  Most most;
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) most.take(load(x + i));
  if (i < n) most.take(load_rest(x + i, n - i, -kInf));
  return most.get();
}

Range largest_within(const double* x, const double* e, std::size_t n) {
  Most high, low;
  const auto take = [&](Vector vx, Vector ve) {
    high.take(vx + ve);
    low.take(vx - ve);
  };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) take(load(x + i), load(e + i));
  if (i < n) take(load_rest(x + i, n - i, -kInf), load_rest(e + i, n - i, 0));
  return {high.get(), low.get()};
}

double sum(const double* x, std::size_t n) {
  Vector total = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) total += load(x + i);
  if (i < n) total += load_rest(x + i, n - i, 0);
  return sum_of(total);
}

double exp_shifted(const double* x, std::size_t n, double shift, double* out) {
  Vector total = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vector y = exp_of(load(x + i) - shift);
    total += y;
    store(out + i, y);
  }
  if (i < n) {
    const Vector y = exp_of(load_rest(x + i, n - i, -kInf) - shift);
    total += y;
    for (std::size_t j = i; j < n; ++j) out[j] = y[j - i];
  }
  return sum_of(total);
}

}  // namespace attn_diag::reference

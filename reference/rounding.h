// What the bounds know about floating-point types and declared arithmetic. Equations and sources:
// docs/bounds.md.
#pragma once

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag::reference {

// Rounding to nearest in a type: |fl(x) - x| <= u |x| + tiny, for |x| <= largest.
struct Rounding {
  double u = 0;        // unit roundoff, half the distance from 1 to the next number
  double tiny = 0;     // half the smallest subnormal number
  double largest = 0;  // the largest finite number
};
Rounding rounding_of(DType type);

// Rounding of a value already held in fp32: no error unless the type is narrower.
Rounding narrowing_to(DType type);

// gamma_n = n u / (1 - n u), Higham (3.1); infinite where n u >= 1.
double gamma(double n, double u);

// Upper bounds of e^x and e^x - 1 for x >= 0, within x^2 of them for the small x of rounding errors.
double exp_above(double x);
double expm1_above(double x);

// Every bound is widened by this, for the reference's own rounding in fp64, which is about 2^-29 of
// what is bounded.
inline constexpr double kRoom = 1 + 0x1p-16;

// The constants of one declared arithmetic.
struct ErrorModel {
  explicit ErrorModel(const Arithmetic& arithmetic);

  Arithmetic declared;
  double dot_u;      // of an addition in q.k and P.V
  Rounding op;       // of every elementary operation and sum; fp32 at best, as taps record fp32
  Rounding scores;   // of S before the softmax; none for fp32
  Rounding probs;    // of P before P.V; none for fp32
  Rounding partial;  // of the accumulator between kernels; none for fp32
  Rounding stats;    // of m and l between kernels; none for fp32
  Rounding output;   // of o; none for fp32
  double exp_abs;    // absolute error of exp where its result is subnormal

  // Relative error of exp at an argument of magnitude up to x.
  double exp_relative(double x) const {
    return (declared.exp_ulp + declared.exp_ulp_per_x * x) * 0x1p-24;
  }
};

// A factor exp(x), x <= 0, as a kernel computes it and multiplies y by it, both seen from the exact
// frame:   |computed product - value * y| <= (value * relative + absolute) * |y|.
struct Factor {
  double value = 0, relative = 0, absolute = 0;
};
// x is the exact argument. argument_error: of the argument the kernel passes to exp, as far as it
// does not cancel against the frames of what is multiplied; frame_error: what does cancel.
Factor factor_of(const ErrorModel& model, double x, double argument_error, double frame_error);

}  // namespace attn_diag::reference

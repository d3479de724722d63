#include "reference/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn_diag::reference {

Rounding rounding_of(DType type) {
  switch (type) {
    case DType::kFp16:
      return {0x1p-11, 0x1p-25, 65504.0};
    case DType::kBf16:
      return {0x1p-8, 0x1p-134, 0x1.fep127};
    case DType::kFp32:
      return {0x1p-24, 0x1p-150, 0x1.fffffep127};
    case DType::kFp64:
      break;
  }
  return {0x1p-53, 0x1p-1074, std::numeric_limits<double>::max()};
}

Rounding narrowing_to(DType type) {
  if (type == DType::kFp32 || type == DType::kFp64)
    return {0, 0, rounding_of(DType::kFp32).largest};
  return rounding_of(type);
}

double gamma(double n, double u) {
  return n * u < 1 ? n * u / (1 - n * u) : std::numeric_limits<double>::infinity();
}

// e^x <= 1 + x + x^2 for 0 <= x <= 1.
double expm1_above(double x) { return x <= 1 ? x + x * x : std::expm1(x); }
double exp_above(double x) { return x <= 1 ? 1 + x + x * x : std::exp(x); }

ErrorModel::ErrorModel(const Arithmetic& arithmetic)
    : declared(arithmetic),
      dot_u(0),
      op(rounding_of(arithmetic.accumulate == DType::kFp64 ? DType::kFp32 : arithmetic.accumulate)),
      scores(narrowing_to(arithmetic.scores)),
      probs(narrowing_to(arithmetic.probs)),
      partial(narrowing_to(arithmetic.partial)),
      stats(narrowing_to(arithmetic.partial_stats)),
      output(narrowing_to(arithmetic.output)) {
  dot_u = op.u * arithmetic.dot_ulp;
  // exp(x) is subnormal only for |x| <= 104, then 0; its error there is counted in units of the
  // smallest subnormal instead of relatively.
  constexpr double kLastSubnormal = 104;
  exp_abs = (2 + arithmetic.exp_ulp + arithmetic.exp_ulp_per_x * kLastSubnormal) * 2 * op.tiny;
}

Factor factor_of(const ErrorModel& model, double x, double argument_error, double frame_error) {
  Factor f;
  f.value = std::exp(x);
  const double rho = model.exp_relative(std::fabs(x) + argument_error + frame_error);
  f.relative = expm1_above(argument_error) * (1 + rho) + rho;
  f.relative += model.op.u * (1 + f.relative);  // the product
  f.absolute = model.exp_abs * exp_above(frame_error);
  if (!(f.value > 2 * model.declared.exp_flush * exp_above(argument_error + frame_error)))
    f.absolute = std::max(f.absolute, f.value);
  return f;
}

}  // namespace attn_diag::reference

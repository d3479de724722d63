#include "harness/compare/judgement.h"

#include <vector>

namespace attn_diag {

void Limits::add(CellAccumulator& to, std::int64_t at, std::int64_t n, TypedCells actual,
                 TypedCells expected, const double* bound) const {
  bool widened = false;
  for (const TensorData* data : x_uncertain)
    widened = widened || (data != nullptr && !data->uncertainty.empty());
  if (!widened && x_tolerance.use_bound)
    return to.add(at, n, actual, expected, ArrayLimit{bound, x_bounds});
  if (!widened)
    return to.add(at, n, actual, expected,
                  AbsoluteRelativeLimit{x_tolerance.atol, x_tolerance.rtol});
  std::vector<double> limits(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    limits[static_cast<std::size_t>(i)] = of(at + i, bound == nullptr ? 0.0 : bound[i],
                                             load_element(expected.data, expected.dtype, i));
  to.add(at, n, actual, expected, ArrayLimit{limits.data()});
}

}  // namespace attn_diag

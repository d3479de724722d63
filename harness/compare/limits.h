// What the inner loop of a comparison takes and returns.
#pragma once

#include <cstdint>

#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// Types by which a limit is given: one value a cell, scaled, or from the expected value.
struct ArrayLimit {
  const double* limit;
  double factor = 1;
};
struct AbsoluteRelativeLimit {
  double atol = 0, rtol = 0;
};

// One unit in the last place of a storage type.
struct UlpScale {
  double per_power_of_two;  // 2^(explicit mantissa bits)
  double smallest_normal;
  // Where rounding may move a number by more than this share of it, fewer than half of its digits are certain: ULPs
  // then count what nobody could have got right, as in a sum that cancels.
  double half_of_digits;
};
constexpr UlpScale ulp_scale(DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return {0x1p10, 0x1p-14, 0x1p-5};
    case DType::kBf16:
      return {0x1p7, 0x1p-126, 0x1p-4};
    case DType::kFp32:
      return {0x1p23, 0x1p-126, 0x1p-12};
    case DType::kFp64:
      break;
  }
  return {0x1p52, 0x1p-1022, 0x1p-26};
}

// Whether an error can be told in ULPs of the storage type.
constexpr bool ulps_mean_something(DType storage, double expected, double bound) {
  return bound <= ulp_scale(storage).half_of_digits * (expected < 0 ? -expected : expected);
}

// Sums and maxima over a run of cells.
struct CellFindings {
  std::int64_t mismatched = 0;
  std::int64_t nan_actual = 0, nan_both = 0, unjudged = 0;
  double max_abs = 0, max_ulp = 0;  // over finite pairs
  double max_rel = 0;    // over finite pairs with expected != 0; see Floors in compare_cells.h
  double max_ratio = 0;  // err / limit, 0 where err is 0, +inf where the cell cannot pass
  double max_zeros = 0;  // |expected| / limit, likewise; see Floors
};

}  // namespace attn_diag

// Whether what is declared of a case makes sense, before any kernel is asked about it.
#pragma once

#include <cmath>
#include <cstdint>

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// 1 / sqrt(head_dim), as everything takes it that is told no other (Vaswani et al., "Attention is all you need", 2017,
// equation 1).
inline float default_softmax_scale(std::int32_t head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

// What is declared, by a live kernel or in a file, decides what is called right: what makes no sense is refused.
// Each throws Error: where sizes, head counts, mask or softmax_scale of a problem make none;
void check_problem(const Problem& problem);
// where tiles and splits cannot be, or do not cover the keys;
void check_geometry(const Geometry& geometry, const Problem& problem);
// where an error is not a number of at least 0, or larger than any arithmetic of the type has.
void check_arithmetic(const Arithmetic& arithmetic);

}  // namespace attn_diag

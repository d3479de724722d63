// Whether what is declared of a case makes sense, before any kernel is asked about it.
#pragma once

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// What is declared, by a live kernel or in a file, decides what is called right: what makes no sense is refused.
// Each throws Error: where sizes, head counts, mask or softmax_scale of a problem make none;
void check_problem(const Problem& problem);
// where tiles and splits cannot be, or do not cover the keys;
void check_geometry(const Geometry& geometry, const Problem& problem);
// where an error is not a number of at least 0, or larger than any arithmetic of the type has.
void check_arithmetic(const Arithmetic& arithmetic);

}  // namespace attn_diag

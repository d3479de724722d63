// The rounding bounds of stage reduce for one row.
#pragma once

#include <cstdint>

#include "reference/bounds.h"

namespace attn_diag::reference {

// Takes the errors of l and partial_o in the exact frame (as left in their bounds) through the
// recurrence, the merge of the splits and the output, then turns all of them into bounds of what is
// recorded. docs/bounds.md, sections "reduce" and "frames".
void bound_reduce(const Plan& plan, const ErrorModel& model, const BlockValues& values,
                  std::int32_t row, BlockBounds& bounds);

}  // namespace attn_diag::reference

// Rows, columns and heads of o that are right, but in another place.
#pragma once

#include <string>
#include <vector>

#include "harness/diagnose/evidence.h"

namespace attn_diag::matching {

// The mean over the keys of v that a head reads.
std::vector<double> mean_of_v(const Capture& capture, std::int32_t batch, std::int32_t head);

// Sentences such as "row i holds what belongs to row i + 8", also about heads, batch entries and columns.
// Looks for the whole of each wrong row of o among the right rows of all heads.
std::vector<std::string> moved_rows(const Evidence& evidence, const reference::PredictionInputs& c);

}  // namespace attn_diag::matching

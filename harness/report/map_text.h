// The pictures of attn-diag report for a terminal.
#pragma once

#include <string>

#include "attn_diag/harness/compare.h"
#include "harness/compare/error_maps.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// Queries down, at most `style.width` columns; larger maps are reduced further, the worst of each group. Ends with the
// legend.
std::string map_text(const ErrorMap& map, const Problem& problem, const Style& style);

// A bar for each bin of error over bound.
std::string histogram_text(const ErrorHistogram& histogram, const Style& style);

// One character a head: the worst of it. Empty where there is but one.
std::string heads_text(const TensorComparison& comparison, const Region& region,
                       const Style& style);

}  // namespace attn_diag::report

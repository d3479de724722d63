// The error picture: how wrong each (query tile, KV tile) is, in the terminal.
#pragma once

#include <cstdint>
#include <string>

#include "attn_diag/harness/compare.h"
#include "harness/report/text.h"

namespace attn_diag::report {

// Query tiles go down, KV tiles across, heads side by side; larger grids are reduced by taking the
// worst of each group of tiles. At most `max_heads` heads of one batch entry are drawn, the wrong
// ones first. A tile in which every cell is masked is blank. Ends with the legend.
std::string picture(const TensorComparison& comparison, const Problem& problem,
                    const Geometry& geometry, const Region& region, const Style& style,
                    int max_heads = 4);

}  // namespace attn_diag::report

// Which KV tiles a mask bug makes a loop visit, and on which of them it leaves the mask out.
#pragma once

#include <cstdint>

#include "attn_diag/reference/counterfactual.h"
#include "reference/mask.h"

namespace attn_diag::reference {

// The tiles that the loop of the query's tile visits.
KeyRange visited_tiles(const Problem& problem, const Geometry& geometry, const MaskChange& change,
                       std::int32_t query);

// Whether the mask is applied on this one of the tiles that are visited.
bool masks_tile(const Problem& problem, const Geometry& geometry, const MaskChange& change,
                std::int32_t query, std::int32_t tile, KeyRange visited);

}  // namespace attn_diag::reference

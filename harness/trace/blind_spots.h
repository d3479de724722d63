// What a run cannot show, because of its sizes: a kernel that is wrong there agrees here.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// Parts of an attention kernel that the problem and its tiling leave untouched, each with what would
// reach it: "the rescale between KV tiles (one KV tile; take a longer --seqlen or a smaller --tile)".
std::vector<std::string> blind_spots(const Problem& problem, const Geometry& geometry);

// The blind spots as one sentence; empty if there are none.
std::string describe_blind_spots(const Problem& problem, const Geometry& geometry);

}  // namespace attn_diag

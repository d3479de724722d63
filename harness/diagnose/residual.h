// The structure of what no known bug explains.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "harness/diagnose/evidence.h"

namespace attn_diag::matching {

// Sentences without a full stop, the most telling first: where it is (by tile, head, place in the tile), and
// what it is: a factor, of low rank, a permutation, a multiple of the mean of V, NaN or zero.
std::vector<std::string> residual_structure(const Evidence& evidence,
                                            const reference::PredictionInputs& c,
                                            const Tolerance& tolerance, int threads);

}  // namespace attn_diag::matching

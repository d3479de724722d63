// Bugs of alpha, which several files have entries of.
#pragma once

#include "reference/counterfactual/catalogue_sums.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

inline bool one_tile(const PredictionInputs& c) { return longest_split(c) == 1; }

// l alone, o alone, both.
template <class Set>
void each(Variants& out, Set set) {
  for (const auto& [l, o] : kSums) set(l, o, of(l, o), out);
}

void alphas_of_some_tiles(const PredictionInputs& c, Variants& out);
void alphas_of_small_rises(const PredictionInputs& c, Variants& out);
// P is relative to the new max there, or to the old one in any case.
void kept_maxima_of_small_rises(const PredictionInputs& c, Variants& out, bool old_probs);
void alphas_in_part(const PredictionInputs& c, Variants& out);

}  // namespace attn_diag::reference

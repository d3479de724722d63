// Bugs that take the number of another row of the query tile for a row's own.
#pragma once

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

void alphas_of_rows(const PredictionInputs& c, Variants& out);
void rescales_of_rows(const PredictionInputs& c, Variants& out);
void sums_of_rows(const PredictionInputs& c, Variants& out);
void maxima_of_rows(const PredictionInputs& c, Variants& out);
void probs_of_rows(const PredictionInputs& c, Variants& out);
void masks_of_rows(const PredictionInputs& c, Variants& out);

// Reductions over lanes that own other rows.
void rows_mixed_in_loop(const PredictionInputs& c, Variants& out);
void rows_mixed_at_end(const PredictionInputs& c, Variants& out);

}  // namespace attn_diag::reference

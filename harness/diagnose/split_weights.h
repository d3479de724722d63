// The merge of splits read backwards: which weights of the splits' own outputs give what was recorded?
//
//   O = sum_i c_i w_i O_i / sum_i c_i w_i   or   sum_i c_i w_i O_i / sum_i w_i,   w_i = e^{L_i}
//
// is linear in c, so that c follows from least squares: from all rows together, where the c are numbers of
// the kernel (F25b of the catalogue), or from each row, where they depend on it.
#pragma once

#include <string>
#include <vector>

#include "harness/diagnose/candidate.h"
#include "harness/diagnose/search.h"

namespace attn_diag::matching {

// split-weights with the factors of several splits fitted, in each sum, if it accounts for every row. Empty
// where the case has no merge, or one of more splits than predictions have factors for.
std::vector<Candidate> find_split_weights(const Search& search);

// A sentence, if the wrong rows are combinations of the splits' own outputs: how their weights differ from
// the right ones. Else empty.
std::string split_weights_sentence(const Evidence& evidence, const reference::PredictionInputs& c);

}  // namespace attn_diag::matching

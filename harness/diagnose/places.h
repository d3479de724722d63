// A bug that is in the code for some tiles or some rows alone.
#pragma once

#include <vector>

#include "harness/diagnose/candidate.h"
#include "harness/diagnose/search.h"

namespace attn_diag::matching {

// Of `singles`, judged on the sample, those that account for every wrong row and for right ones too many: in some
// rows alone. And every bug of what is made of a tile, on some tiles of the loop alone, under the first cut.
// Returns what accounts for everything, best first.
std::vector<Candidate> find_in_places(const Search& search,
                                      const std::vector<const reference::Hypothesis*>& hypotheses,
                                      const std::vector<Candidate>& singles);

}  // namespace attn_diag::matching

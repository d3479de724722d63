// A bug that is in the code for some tiles or some rows alone.
#pragma once

#include <vector>

#include "harness/diagnose/candidate.h"
#include "harness/diagnose/search.h"

namespace attn_diag::matching {

// Tries bugs in some places only: those of `singles`, judged on the sample, that account for every wrong row but
// spoil right ones, in some rows; every bug in what is made of a tile alone, on some tiles of the loop, under the
// first cut. Returns what accounts for everything, best first.
std::vector<Candidate> find_in_places(const Search& search,
                                      const std::vector<const reference::Hypothesis*>& hypotheses,
                                      const std::vector<Candidate>& singles);

}  // namespace attn_diag::matching

// Two bugs at once, where no single one accounts for every row.
#pragma once

#include <string>
#include <vector>

#include "harness/diagnose/candidate.h"
#include "harness/diagnose/search.h"

namespace attn_diag::matching {

// Kernels with both bugs of a pair, for all pairs: first on a few rows, what is left on the sample, what
// is left then on all rows. Parameters that would be fitted are tried at their named values, then, with the
// most promising partners, fitted. Returns those that account for everything, best first. The work is bounded by
// a count of multiplications, so that the result does not depend on the machine.
std::vector<Candidate> find_pairs(const Search& search,
                                  const std::vector<const reference::Hypothesis*>& hypotheses);

// Of singles judged on the sample: two of which each explains wrong rows that the other does not, and that
// together explain all of them, none of them less than 1 in 20. Empty, or the two.
std::vector<Candidate> find_union(const Search& search, const std::vector<Candidate>& singles);

}  // namespace attn_diag::matching

// Two bugs at once, where no single one accounts for every row.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/diagnose/candidate.h"
#include "harness/diagnose/search.h"

namespace attn_diag::matching {

// How many pairs are tried.
struct PairLimit {
  // Multiplications, about: counted and not timed, so that the result does not depend on the machine.
  double work = kPairWork;
  std::function<void(std::int64_t tried, std::int64_t all)> on_tried;
  // Set by find_pairs; without pairs that some row rules out beforehand.
  std::int64_t tried = 0, all = 0;
};

// Tries kernels with both bugs of a pair, for all pairs, those first whose bugs alone come nearest: on a few rows, the
// remaining ones on the sample, and what then remains on all rows. Parameters that would be fitted are tried at their
// named values, then, with the most promising partners, fitted. Returns what accounts for everything, best first.
std::vector<Candidate> find_pairs(const Search& search,
                                  const std::vector<const reference::Hypothesis*>& hypotheses,
                                  PairLimit& limit);

// Two of the singles judged on the sample that together explain all wrong rows, where each explains rows that
// the other does not, at least 1 in 20. Empty, or the two.
std::vector<Candidate> find_union(const Search& search, const std::vector<Candidate>& singles);

}  // namespace attn_diag::matching

// A hypothesis with its parameters fixed, and how it fared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/diagnose.h"
#include "harness/diagnose/fit.h"
#include "harness/diagnose/judge.h"

namespace attn_diag::matching {

struct Candidate {
  reference::Variant variant;
  std::vector<reference::Variant> parts;  // of a pair: its two bugs, each alone
  int generality = 0;                     // of its bugs, added up
  bool fitted = false;                    // a parameter is a number that was fitted, without a name
  std::size_t cut = 0;     // which of the cases: the cut into tiles that it was predicted for
  std::int64_t order = 0;  // in the catalogue
  Tally tally;             // of the rows looked at so far
  bool confirmed = false;  // those were all rows
  // Telling rows of the sample; empty where it was dropped early.
  std::vector<std::uint8_t> explained;
  // This bug with other parameters, where these account for as much.
  std::vector<reference::Variant> alternatives;
  std::vector<std::string> equivalent;  // labels of what was folded into it
};

// Whether `a` accounts better for what was recorded: more wrong rows, then more rows, then a smaller
// residual, then less general, then earlier in the catalogue.
bool better(const Candidate& a, const Candidate& b);

// Whether it accounts for all rows looked at, and these are more evidence than its own freedom.
bool accounts(const Candidate& candidate);

Match to_match(const Candidate& candidate);

}  // namespace attn_diag::matching

// Several hypotheses account for everything that was recorded: which of them is the answer, and what would
// tell the others from it.
#pragma once

#include <string>
#include <vector>

#include "harness/diagnose/candidate.h"
#include "harness/diagnose/search.h"

namespace attn_diag::matching {

struct EquivalenceClass {
  // One of each hypothesis, the least general and simplest first. One: it is named.
  std::vector<Candidate> members;
  // Generalisations that were folded into a member, and members whose parameters are open, as sentences.
  std::vector<std::string> notes;
  std::vector<TellingRun> experiments;  // without commands: what, why
};

// `candidates` are all inside. A member whose fitted parameter makes it the same function as a less general
// one, for other inputs too, is folded into that. `other_cuts`: in which the kernel can be run again.
EquivalenceClass resolve(const Search& search, std::vector<Candidate> candidates,
                         const std::vector<Geometry>& other_cuts);

}  // namespace attn_diag::matching

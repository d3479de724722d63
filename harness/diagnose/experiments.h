// What would tell apart hypotheses that these inputs cannot: other inputs, lse, another cut into tiles and splits.
#pragma once

#include <cstddef>
#include <vector>

#include "attn_diag/harness/diagnose.h"
#include "harness/diagnose/candidate.h"
#include "harness/diagnose/contrast.h"
#include "harness/diagnose/search.h"

namespace attn_diag::matching {

// The members' predictions for other inputs of the same shape, and for the same inputs in other cuts.
class Elsewhere {
 public:
  // All but the cuts are kept by reference and outlive this. `other_cuts`: in which the kernel can be run.
  Elsewhere(const Search& search, const std::vector<Candidate>& members,
            const std::vector<Geometry>& other_cuts);

  // Whether two members are the same function of all other inputs that were tried.
  bool same(std::size_t a, std::size_t b) const;
  // Runs that tell the members `which` apart: lse, if it was not recorded; then, one by one, the run that tells most of
  // the remaining pairs apart. Two members are told apart if all their forms are.
  std::vector<TellingRun> experiments(const std::vector<std::size_t>& which) const;

 private:
  struct Setting {
    TellingRun change;
    Contrast contrast;  // of every form of every member
  };
  void try_inputs();
  void try_cuts(const std::vector<Geometry>& cuts);
  // The least gap between forms of two members.
  Contrast::Gap gap(const Contrast& contrast, std::size_t a, std::size_t b) const;

  const Search& x_search;
  const std::vector<Candidate>& x_members;
  std::vector<reference::Deviation> x_forms;  // the first of every member is the member itself
  std::vector<std::size_t> x_first;           // of each member; one more than there are
  std::vector<reference::RowIndex> x_rows;
  std::vector<Setting> x_inputs, x_cuts;
};

}  // namespace attn_diag::matching

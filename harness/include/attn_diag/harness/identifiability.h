// What given inputs can show: which known bugs they hide, and which they cannot tell apart, in o and lse.
// It needs no kernel run: every bug of the catalogue (attn_diag/reference/counterfactual.h) predicts the
// numbers, and two predictions whose rounding bounds overlap everywhere cannot be told apart by any result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/reference/counterfactual.h"

namespace attn_diag {

struct Identifiability {
  struct Bug {
    std::string id, statement, formula;
    // Ways in which the bug can be there (parameters), and those of which no cell differs from the right
    // one by more than the bounds of both. A way that leaves memory unwritten shows whatever the inputs.
    std::int64_t ways = 0, hidden = 0;
    std::vector<std::string> hidden_ways;  // labels
    double shows_by = 0;  // error over both bounds of the cell that differs most, in any way
    // Other bugs with a way that gives the same numbers as a way of this one that shows.
    std::vector<std::string> alike;

    bool is_hidden() const { return ways > 0 && hidden == ways; }
  };
  std::vector<Bug> bugs;  // those that can be there at all, in the order of the catalogue
  std::int64_t rows =
      0;  // looked at to tell bugs apart; a hidden bug is hidden in all rows of the problem

  std::int64_t hidden() const;          // bugs
  std::int64_t hidden_in_part() const;  // bugs with some hidden way, but not all
  std::int64_t alike() const;           // bugs that show but are like another
};

// `threads` 0: all cores. The result does not depend on it.
Identifiability identify(const reference::PredictionInputs& c, int threads = 0);

}  // namespace attn_diag

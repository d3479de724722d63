// Whether a kernel's result is the same in a second run.
#pragma once

#include <string>

#include "attn_diag/harness/xray.h"

namespace attn_diag::xraying {

struct Moves {
  bool moved = false,
       beyond_rounding = false;  // the latter: by more than rounding can take two runs
  Repetition repetition;
  std::string text;  // a sentence without a full stop, if it moved
};

// `first` is the first run of the case, if there is one already. On a GPU run_kernel runs everything twice;
// on the host the second run has the threads in the opposite order.
Moves find_moves(const Experiment& experiment, const Capture* first = nullptr);

// The experiment with the kernel as it is, all of its output recorded.
Experiment of_production(Experiment experiment);

}  // namespace attn_diag::xraying

// Where in its sources a kernel records a tensor.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"

namespace attn_diag {

struct TapLine {
  std::string path;  // as provenance has it
  int line = 0;
};

// The tap statements of a tensor in the sources that are on disk, in their order: lines that begin with `tap.`
// (tap.h) and name it. Empty where there are none.
std::vector<TapLine> find_tap_lines(const Provenance& provenance, Tensor tensor);

}  // namespace attn_diag

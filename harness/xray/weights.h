// The weights with which a kernel lets v into o.
#pragma once

#include <cstdint>
#include <vector>

#include "attn_diag/harness/xray.h"

namespace attn_diag::xraying {

struct Weights {
  // [batch][head][query][key]: P / l as the kernel has it. NaN where o was NaN or infinite.
  std::vector<double> value;
  // A weight w is within relative * w + absolute of what the kernel had; `relative` per row [batch][head]
  // [query]: rounding of P, of the sums and of o.
  std::vector<double> relative;
  double absolute = 0;
  int launches = 0;
};

// Runs the production kernel with one-hot v until every key had its turn.
Weights read_weights(const Experiment& experiment, const XrayOptions& options);

}  // namespace attn_diag::xraying

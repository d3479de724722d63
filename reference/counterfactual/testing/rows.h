// What tests of predictions and of the twin ask for: everything.
#pragma once

#include <cstdint>
#include <vector>

#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::reference::testing {

inline constexpr std::uint32_t kAllTensors = (1u << kNumTensors) - 1;

inline std::vector<RowIndex> all_rows(const Problem& p) {
  std::vector<RowIndex> rows;
  for (std::int32_t b = 0; b < p.batch; ++b)
    for (std::int32_t h = 0; h < p.heads; ++h)
      for (std::int32_t i = 0; i < p.seqlen_q; ++i) rows.push_back({b, h, i});
  return rows;
}

}  // namespace attn_diag::reference::testing

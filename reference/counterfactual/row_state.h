// One row on its way through the pipeline, with the error of every number: how far rounding in the
// kernel's arithmetic may take it from what is computed here.
#pragma once

#include <cstdint>
#include <vector>

namespace attn_diag::reference {

struct RowState {
  // Per slot (slots.h): -inf where the key is not counted.
  std::vector<double> s, s_error;
  std::vector<double> p, l_weight, o_weight;  // P, and its error as l and as P.V feel it
  // Per KV tile.
  std::vector<double> m, m_error, l, l_error;
  std::vector<double> partial_o, partial_o_error;  // (tiles, head_dim_v)
  std::vector<double> running_m, running_m_error, running_l, running_l_error;
  std::vector<double> running_o, running_o_error;  // (tiles, head_dim_v)
  // Per split.
  std::vector<double> merged_l, merged_l_error;
  std::vector<double> merged_o, merged_o_error;  // (splits, head_dim_v)
  double total_m = 0, total_m_error = 0, total_l = 0, total_l_error = 0;
  double lse = 0, lse_error = 0;
  std::vector<double> o, o_error;  // (head_dim_v)
};

}  // namespace attn_diag::reference

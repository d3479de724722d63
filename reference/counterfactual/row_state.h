// One row on its way through the pipeline, with the error of every number: how far rounding in the
// kernel's arithmetic may take it from what is computed here.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/mask.h"

namespace attn_diag::reference {

// What a row sees of a tile: slots.
struct TileView {
  bool visited = true;
  KeyRange all;      // of the tile
  KeyRange counted;  // or, inverted, all but these
  bool inverted = false;
  bool by_fragment = false;  // of these, those that the mask shows at other places of the fragment
};

// The state of the online softmax.
struct Running {
  double m = 0, m_error = 0, l = 0, l_error = 0;
  std::vector<double> o, o_error;     // (head_dim_v)
  bool known = true, o_known = true;  // m and l; o
};

struct RowState {
  std::vector<TileView> views;    // per tile
  std::vector<KeyRange> counted;  // per tile: the slots outside have P = 0
  // Per slot (slots.h): -inf where the key is not counted.
  std::vector<double> s, s_error;
  std::vector<double> unmasked_s;             // filled where masked keys are counted after all
  std::vector<double> masked_s;               // of masked keys, where not all have one score
  std::vector<double> p, l_weight, o_weight;  // P, and its error as l and as P.V feel it
  std::vector<double> weights;                // what multiplies V, if it is not P; else empty
  // Per KV tile.
  std::vector<double> own_m;  // the tile's own max
  std::vector<double> m, m_error, l, l_error;
  std::vector<double> frame;  // what P is relative to
  std::vector<std::uint8_t> frame_known;
  std::vector<double> lane_m;  // (tiles, lanes): likewise, where lanes have one each; else empty
  std::vector<double> partial_o, partial_o_error;  // (tiles, head_dim_v)
  std::vector<double> running_m, running_m_error, running_l, running_l_error;
  std::vector<double> running_o, running_o_error;  // (tiles, head_dim_v)
  // Per split.
  std::vector<double> merged_l, merged_l_error;
  std::vector<double> split_l, split_l_error;    // what the split adds to l
  std::vector<double> merged_o, merged_o_error;  // (splits, head_dim_v)
  double total_m = 0, total_m_error = 0, total_l = 0, total_l_error = 0;
  double lse_m = 0, lse_l = 0;               // of which lse is made
  std::vector<double> lane_l, lane_l_error;  // of the last split, where lanes have one each
  double lse = 0, lse_error = 0;
  std::vector<double> o, o_error;  // (head_dim_v)
  // 0 where the formula cannot know: per slot (empty: all known), per tile, of the row.
  std::vector<std::uint8_t> s_known, softmax_known, product_known, running_known, running_o_known;
  bool l_known = true, o_known = true, lse_known = true;
};

}  // namespace attn_diag::reference

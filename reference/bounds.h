// The rounding bound of every element of one block of query rows: docs/bounds.md, in code.
#pragma once

#include <array>
#include <vector>

#include "reference/plan.h"
#include "reference/rounding.h"
#include "reference/values.h"

namespace attn_diag::reference {

// |k|, |v| of one kv head, and what the bounds need to know of their magnitudes.
struct KvMagnitudes {
  Panels k, v;                // as KvHead
  std::vector<double> k_sum;  // (seqlen_k): sum of |k| over head_dim
  double largest_v = 0;       // the largest finite |v|
  bool v_finite = true;       // no NaN and no infinity in v
};
KvMagnitudes magnitudes(const Plan& plan, const KvHead& kv);

// Dense like BlockValues; memory is reused from block to block.
struct BlockBounds {
  std::array<std::vector<double>, kNumTensors> tensor;

  double* operator[](Tensor t) { return tensor[static_cast<std::size_t>(t)].data(); }

  // Intermediate results, per row.
  std::vector<double> abs_q;    // (rows, head_dim)
  std::vector<double> weights;  // (rows, seqlen_k): factors of |v| in the error of partial_o
  std::vector<double> frame;    // (rows, tiles): error of m
  std::vector<double> running;  // (rows, tiles): error of running_m
  std::vector<double> scratch;  // (seqlen_k)
  // (rows, tiles, head_dim_v): sum p |v| of a tile; empty: the cut into splits is known.
  std::vector<double> abs_partial_o;
};

// Fills the bounds of every stage the plan computes, for the block of `values`.
void compute_bounds(const Plan& plan, const ErrorModel& model, const KvMagnitudes& magnitudes,
                    const BlockValues& values, BlockBounds& bounds);

}  // namespace attn_diag::reference

// Online softmax: the state of one row, and how states are extended and merged.
//
//   m  largest score so far, -inf before the first visible one
//   l  sum of exp(score - m)
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "attn_diag/kernels/tap.h"

namespace attn_diag {

// What to subtract from scores before exp. A row without a visible key has m = -inf, and
// exp(-inf - (-inf)) would be NaN; with 0 its probabilities are exp(-inf) = 0.
ATTN_DIAG_DEVICE float exponent_origin(float m) { return m == -INFINITY ? 0.0f : m; }

// Factor that carries sums taken relative to m_from over to m_to >= m_from. 0 for m_from = -inf,
// also if m_to is -inf too.
ATTN_DIAG_DEVICE float rescale_factor(float m_from, float m_to) {
  return __expf(m_from - exponent_origin(m_to));
}

struct SoftmaxState {
  float m = -INFINITY;
  float l = 0.0f;

  // Adds a tile whose sum tile_l is relative to new_m >= m. Returns the factor by which sums
  // weighted with the earlier probabilities have to be rescaled.
  ATTN_DIAG_DEVICE float append(float new_m, float tile_l) {
    const float alpha = rescale_factor(m, new_m);
    l = alpha * l + tile_l;
    m = new_m;
    return alpha;
  }

  // Natural logarithm of the sum of exp(score); -inf + ln 0 = -inf for an empty row.
  ATTN_DIAG_DEVICE float lse() const { return m + logf(l); }

  // An accumulated value divided by l; an empty row is 0 and not 0 / 0 = NaN.
  ATTN_DIAG_DEVICE float normalise(float accumulated) const {
    return l == 0.0f ? 0.0f : accumulated / l;
  }
};

}  // namespace attn_diag

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

  // Adds a sum over other keys that is relative to another maximum, m_part <= m: weight is
  // rescale_factor(m_part, m).
  ATTN_DIAG_DEVICE void add(float weight, float part_l) { l = weight * part_l + l; }

  // Merges the state of other keys, whose maximum is the larger or the same. Returns the factor by which
  // what was summed with the earlier probabilities has to be rescaled.
  ATTN_DIAG_DEVICE float merge(SoftmaxState other) {
    const float alpha = rescale_factor(m, other.m);
    other.add(alpha, l);
    *this = other;
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

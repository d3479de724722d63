// The arithmetic a kernel declares, from which the rounding bounds are derived (docs/bounds.md).
// A kernel that computes less exactly than it declares is reported as wrong; that is the point.
#pragma once

#include <cstdint>

#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// What of attention a kernel computes. S (scaled and masked) and P (normalised: exp(S - lse)) then lie dense in
// memory, (batch, heads, seqlen_q, seqlen_k), in the types `scores` and `probs`.
enum class Part : std::uint8_t {
  kAttention,      // q, k, v -> o and lse
  kScores,         // q, k -> S
  kFromScores,     // S, v -> o, and perhaps lse
  kFromProbs,      // P, v -> o
  kFromRawScores,  // as kFromScores, of q.k of all keys: the kernel scales and masks
};

struct Arithmetic {
  DType accumulate = DType::kFp32;  // of q.k, of P.V, of l and of the running accumulator
  // In the dot products q.k and P.V every addition errs by at most dot_ulp * u of `accumulate`, times
  // the sum of the magnitudes. 1: one rounding to nearest each. Tensor cores align the products of a
  // block of 4 to 16 and truncate: 2.5 (docs/bounds.md).
  double dot_ulp = 1.0;
  DType probs =
      DType::kFp32;  // type P is rounded to before P.V (and before l, if l_from_rounded_probs)
  bool l_from_rounded_probs = false;
  DType scores = DType::kFp32;         // type S is rounded to before the softmax
  DType partial = DType::kFp32;        // type in which split partials are stored between kernels
  DType partial_stats = DType::kFp32;  // ... and m and l, or the lse, of a split
  DType output = DType::kFp16;         // of o
  DType scaled_q = DType::kFp32;       // type q*softmax_scale is rounded to, if scale_applied_to_q
  bool scale_applied_to_q = false;     // otherwise the scale multiplies the finished dot product
  // exp(x): relative error <= (exp_ulp + exp_ulp_per_x * |x|) * 2^-24, and results below exp_flush
  // may be returned as 0.
  double exp_ulp = 2.0;
  double exp_ulp_per_x = 1.173;
  double exp_flush = 1.1754943508222875e-38;
  double log_ulp = 2.0;  // log(x): error <= log_ulp * 2^-24 * max(|ln x|, 2^-126)  + log_abs
  double log_abs = 0.0;
  // As KernelInfo::part: the harness sets it. What is given is exact to the reference, which rounds it so itself.
  Part part = Part::kAttention;
};

}  // namespace attn_diag

// A precision twin of the reference: attention in fp64, with any set of the roundings that a kernel's declared
// arithmetic makes. With none of them it is the reference's o; with one, o as that rounding alone would change
// it; with all, about what the kernel computes. Which order of summation and which exp a kernel has is not declared:
// the twin sums in order of keys and dims, and takes exp as exp2 of a rounded product.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag::reference {

enum class Rounded : std::uint8_t {
  kScaledQ,       // q * scale, to `scaled_q`
  kQkSums,        // the additions of q.k, in `accumulate`
  kScores,        // S, to `scores`; the scale's product, to `accumulate`
  kExp,           // S - m, its product with log2 e, and exp2
  kProbs,         // P, to `probs`
  kRowSums,       // the additions of l, and its rescaling
  kPvSums,        // the additions of P.V, and the accumulator's rescaling
  kPartials,      // accumulators of splits, to `partial`
  kPartialStats,  // m and l of splits, to `partial_stats`
  kOutput,        // the division by l; o, to `output`
};
inline constexpr int kNumRounded = 10;

constexpr std::uint32_t rounded_bit(Rounded r) { return 1u << static_cast<unsigned>(r); }
inline constexpr std::uint32_t kAllRounded = (1u << kNumRounded) - 1;

// "P rounded to fp16", as the arithmetic declares it; empty: it declares no such rounding.
std::string describe(Rounded rounding, const Arithmetic& arithmetic, const Geometry& geometry);

// o of some rows: dense [row][dim]. `roundings`: rounded_bit() each. For kernels that compute attention from q, k
// and v alone (Part::kAttention). Uses the calling thread.
std::vector<double> twin_o(const Problem& problem, const Geometry& geometry,
                           const Arithmetic& arithmetic, const Inputs& inputs,
                           std::span<const RowIndex> rows, std::uint32_t roundings);

}  // namespace attn_diag::reference

// Inputs whose products and sums have no rounding in fp32.
#include <algorithm>
#include <cmath>

#include "harness/inputs/kinds.h"

namespace attn_diag::inputs {

// Products are at most 4, and 16 in P.V: sums of integers far below 2^24.
void integers(const RowPlace& row, std::span<double> out) {
  const Draw draw = row.draw();
  const std::int64_t largest = row.operand == Operand::kV ? 8 : 2;
  for (std::size_t d = 0; d < out.size(); ++d)
    out[d] =
        static_cast<double>(draw.below(2 * largest + 1, static_cast<std::int64_t>(d)) - largest);
}

// Every query and every key has one of 8 patterns of signs that are orthogonal to each other, so that
// a score is 0, or the same large number where query and key are of one pattern. exp of the difference
// is 0 in fp32: P is 0 or 1, and so is every factor of a rescale. Dims beyond a multiple of 8 have no
// pattern and add the same to every score; below 8 dims all scores are alike.
void powers(const RowPlace& row, std::span<double> out) {
  constexpr std::int64_t kPatterns = 8;
  constexpr double kApart = 128.0;  // e^-128 is below the smallest fp32
  const Draw draw = row.draw(), shared = row.shared_draw();
  const Problem& p = row.p;
  if (row.operand == Operand::kV) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto d = static_cast<std::int64_t>(i);
      out[i] = draw.sign(d) * std::ldexp(1.0, static_cast<int>(draw.below(4, d, 1)));
    }
    return;
  }
  const std::int64_t patterned = p.head_dim / kPatterns * kPatterns;
  // 2^e is what q_d k_d has to be, shared out between the two.
  const double needed = kApart / (static_cast<double>(std::max<std::int64_t>(patterned, 1)) *
                                  static_cast<double>(p.softmax_scale));
  const int e = std::max(0, static_cast<int>(std::ceil(std::log2(needed))));
  const int of_q = e / 2, of_k = e - of_q;
  const auto pattern = static_cast<std::uint64_t>(draw.below(kPatterns, 0, 1));
  // Queries differ in magnitude, too: the scores that count grow with it.
  const double magnitude = row.operand == Operand::kQ
                               ? std::ldexp(1.0, of_q + static_cast<int>(draw.below(2, 0, 2)))
                               : std::ldexp(1.0, of_k);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto d = static_cast<std::int64_t>(i);
    // Walsh functions: the parity of the bits that d and the pattern share.
    const bool odd = d < patterned && (__builtin_popcountll(pattern & i) & 1) != 0;
    out[i] = magnitude * shared.sign(d) * (odd ? -1.0 : 1.0);
  }
}

}  // namespace attn_diag::inputs

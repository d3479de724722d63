// Inputs that are a function of their place.
#include <algorithm>

#include "harness/inputs/kinds.h"

namespace attn_diag::inputs {

void ones(const RowPlace&, std::span<double> out) { std::fill(out.begin(), out.end(), 1.0); }

// Steps of 1/16 in [-1, 1]: exact in every type, and neighbours along every axis differ.
void ramp(const RowPlace& row, std::span<double> out) {
  const std::int64_t phase = row.operand == Operand::kQ ? 0 : row.operand == Operand::kK ? 11 : 23;
  for (std::size_t d = 0; d < out.size(); ++d) {
    const auto place = 7 * row.b + 5 * row.h + 3 * row.s + static_cast<std::int64_t>(d) + phase;
    out[d] = static_cast<double>(place % 33 - 16) / 16.0;
  }
}

// q.k * softmax_scale runs from about -kRise at the first key to 0 at the last, so that the row max
// grows with every KV tile, and e^-m is large; v carries batch, head and key.
void rising(const RowPlace& row, std::span<double> out) {
  constexpr double kRise = 8.0;
  const Draw draw = row.draw();
  const Problem& p = row.p;
  const double place = static_cast<double>(row.s + 1) / p.seqlen_k;
  double middle = 1.0, noise = 0.25;
  if (row.operand == Operand::kK)
    middle = kRise * (place - 1.0) / (p.head_dim * static_cast<double>(p.softmax_scale));
  if (row.operand == Operand::kV) {
    middle = place + 0.25 * static_cast<double>(row.h) + 0.125 * static_cast<double>(row.b);
    noise = 0.5;
  }
  for (std::size_t d = 0; d < out.size(); ++d)
    out[d] = middle + noise * draw.normal(static_cast<std::int64_t>(d));
}

// Scores: the second half of the dims cancels the sum of the first half up to a small rest, so that
// sum |q_d k_d| is many times |q.k|. Keys 2j and 2j + 1 have equal k, so equal weights, and their v
// cancel up to a small rest.
void cancel(const RowPlace& row, std::span<double> out) {
  constexpr double kLarge = 4.0, kLargeV = 16.0;
  const Draw shared = row.shared_draw();
  const std::int64_t pair = row.s / 2;
  const Draw own = row.draw();
  const Draw of_pair(row.seed, 5, row.b, row.h, pair);
  const auto half = static_cast<std::int64_t>(out.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto d = static_cast<std::int64_t>(i);
    const bool paired = d < 2 * half;
    switch (row.operand) {
      case Operand::kQ:
        // Equal in both halves; of k's signs, so that the products of a half are all of one sign.
        out[i] = paired ? shared.sign(d % half) * kLarge * (0.75 + 0.5 * own.uniform(d % half))
                        : own.normal(d);
        break;
      case Operand::kK:
        out[i] = of_pair.normal(d) / 8;
        if (paired)
          out[i] += (d < half ? 1.0 : -1.0) * shared.sign(d % half) * kLarge *
                    (0.75 + 0.5 * of_pair.uniform(d % half));
        break;
      case Operand::kV:
        out[i] = (row.s % 2 == 0 ? 1.0 : -1.0) * kLargeV * (0.5 + of_pair.uniform(d)) +
                 own.normal(d) / 8;
        break;
    }
  }
}

}  // namespace attn_diag::inputs

// Inputs that are drawn element by element.
#include <algorithm>
#include <cmath>

#include "harness/inputs/kinds.h"

namespace attn_diag::inputs {
namespace {

// For kind heavy: nearly no draw exceeds it, and fp16 holds the scores.
constexpr double kLargest = 256.0;

template <class Value>
void each(const RowPlace& row, std::span<double> out, const Value& value) {
  const Draw draw = row.draw();
  for (std::size_t d = 0; d < out.size(); ++d) out[d] = value(draw, static_cast<std::int64_t>(d));
}

}  // namespace

void randn(const RowPlace& row, std::span<double> out) {
  each(row, out, [](const Draw& draw, std::int64_t d) { return draw.normal(d); });
}

void small(const RowPlace& row, std::span<double> out) {
  each(row, out, [](const Draw& draw, std::int64_t d) { return 0.125 * draw.normal(d); });
}

// Student's t with 3 degrees of freedom: a normal over the root of the mean of three squared ones.
void heavy(const RowPlace& row, std::span<double> out) {
  each(row, out, [](const Draw& draw, std::int64_t d) {
    double squares = 0;
    for (const std::uint64_t stream : {10, 20, 30}) {
      const double x = draw.normal(d, stream);
      squares += x * x;
    }
    return std::clamp(draw.normal(d) / std::sqrt(squares / 3.0), -kLargest, kLargest);
  });
}

void large(const RowPlace& row, std::span<double> out) {
  const double scale = row.operand == Operand::kV ? 256.0 : 8.0;
  each(row, out, [&](const Draw& draw, std::int64_t d) { return scale * draw.normal(d); });
}

void uniform(const RowPlace& row, std::span<double> out) {
  each(row, out, [](const Draw& draw, std::int64_t d) { return 2.0 * draw.uniform(d) - 1.0; });
}

}  // namespace attn_diag::inputs

// Inputs under which bugs show: see probe() below and docs/inputs.md.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "harness/inputs/kinds.h"

namespace attn_diag::inputs {
namespace {

// Keys come in groups of 16, the narrowest KV tile. One key of each group is its peak; the scores of
// the peaks rise from kFirstPeak by kRise over the whole length, so that the running max rises from
// tile to tile whatever the tile. The others lie kBelow under the first peak, so that each of them
// keeps a share of the row, also of the last one.
constexpr std::int64_t kGroup = 16;
constexpr double kFirstPeak = -9.0;
constexpr double kRise = 3.0;
constexpr double kBelow = 1.6;
// Of the scores of the others, and of no peak: different for every query.
constexpr double kSpread = 0.3;
// A query's scores are those of the common direction times 1 - kRows/2 .. 1 + kRows/2.
constexpr double kRows = 0.25;

// v of a key is large in one dim, of the others small: a dim of o is a sum over few keys, of which
// each then is a large part.
constexpr double kSpike = 8.0;
constexpr double kPeakSpike = 1.0;  // of a peak, which has the weight of many other keys
constexpr double kBackground = 1.0 / 16;

// The direction that q and k of a KV head share: signs and uneven lengths, so that no permutation of
// dims keeps it and the roundings of the dims differ.
double direction(const Draw& shared, std::int64_t d) {
  return shared.sign(d) * (0.8 + 0.45 * shared.uniform(d, 1));
}

// Uniform in +-sqrt(3): variance 1, and bounded.
double noise(const Draw& draw, std::int64_t d) {
  return std::sqrt(3.0) * (2.0 * draw.uniform(d) - 1.0);
}

// Fills `out` with noise orthogonal to the direction, so that it changes no common score.
// `conjugate`: orthogonal to what the other operand has of it, 1 / direction.
void fill_noise(const Draw& draw, const Draw& shared, bool conjugate, std::span<double> out) {
  double along = 0, length = 0;
  const auto g = [&](std::size_t i) {
    const double x = direction(shared, static_cast<std::int64_t>(i));
    return conjugate ? 1.0 / x : x;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = noise(draw, static_cast<std::int64_t>(i));
    along += out[i] * g(i);
    length += g(i) * g(i);
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] -= along / length * g(i);
}

// The peak of a group is its first key, its last, or any.
bool is_peak(const RowPlace& row) {
  const std::int64_t group = row.s / kGroup;
  const std::int64_t keys = std::min(kGroup, row.p.seqlen_k - group * kGroup);
  const std::int64_t place = row.s - group * kGroup;
  if (group % 3 == 0) return place == keys - 1;
  if (group % 3 == 1) return place == 0;
  return place == row.shared_draw().below(keys, group, 2);
}

void fill_q(const RowPlace& row, std::span<double> out) {
  const Draw draw = row.draw(), shared = row.shared_draw();
  fill_noise(draw, shared, true, out);
  const double length = 1.0 + kRows * (draw.uniform(0, 1) - 0.5);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] += length * direction(shared, static_cast<std::int64_t>(i));
}

void fill_k(const RowPlace& row, std::span<double> out) {
  const Draw draw = row.draw(), shared = row.shared_draw();
  const std::int64_t group = row.s / kGroup;
  const std::int64_t groups = (row.p.seqlen_k + kGroup - 1) / kGroup;
  const double scale = row.p.softmax_scale, dims = static_cast<double>(out.size());

  double score = kFirstPeak - kBelow;
  std::fill(out.begin(), out.end(), 0.0);
  if (is_peak(row)) {
    score = kFirstPeak + kRise * static_cast<double>(group + 1) / static_cast<double>(groups);
  } else {
    fill_noise(draw, shared, false, out);
    const double spread = kSpread / (scale * std::sqrt(dims));
    for (double& x : out) x *= spread;
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] += score / (dims * scale * direction(shared, static_cast<std::int64_t>(i)));
}

void fill_v(const RowPlace& row, std::span<double> out) {
  const Draw draw = row.draw(), shared = row.shared_draw();
  const auto dims = static_cast<std::int64_t>(out.size());
  // The keys of a run take the dims in turn; where they begin differs from run to run.
  const std::int64_t run = row.s / dims;
  const std::int64_t spike = (row.s % dims + shared.below(dims, run, 3)) % dims;
  const double height = is_peak(row) ? kPeakSpike : kSpike;
  for (std::int64_t d = 0; d < dims; ++d) {
    const double small = kBackground * (1.0 + draw.uniform(d, 2));
    const double large = d == spike ? height * (1.0 + draw.uniform(d, 1)) : 0.0;
    out[static_cast<std::size_t>(d)] = draw.sign(d) * (small + large);
  }
}

}  // namespace

void probe(const RowPlace& row, std::span<double> out) {
  switch (row.operand) {
    case Operand::kQ:
      return fill_q(row, out);
    case Operand::kK:
      return fill_k(row, out);
    case Operand::kV:
      return fill_v(row, out);
  }
}

}  // namespace attn_diag::inputs

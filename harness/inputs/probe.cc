// Inputs under which bugs show: see probe() below and docs/inputs.md.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

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
// One key of each group is faint: so far under the first peak that its P is below 2^-10 where the max is
// among the highest. Kernels that flush small P lose it; its v makes up for its weight.
constexpr double kFaint = 4.8;
constexpr double kFaintSpike = 96.0;
constexpr std::int64_t kFaintPlace = 5, kNextFaintPlace = 6;
// Spread of the scores of the other keys, which are no peaks: different for every query.
constexpr double kSpread = 0.3;
// In one of kFalling rows the peaks fall instead: where every tile has the largest max so far, the max of
// the tile and the running one are the same, and mixing them up would not show.
constexpr std::int64_t kFalling = 4;
// A query's scores are those of the common direction times 1 - kRows/2 .. 1 + kRows/2.
constexpr double kRows = 0.25;

// v of a key is large in one dim, of the others small: a dim of o is a sum over few keys, of which
// each then is a large part.
constexpr double kSpike = 8.0;
constexpr double kPeakSpike = 1.0;  // of a peak, which has the weight of many other keys
constexpr double kBackground = 1.0 / 16;

using Vector = std::vector<double>;

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void subtract(std::span<double> from, const Vector& x, double times) {
  for (std::size_t i = 0; i < from.size(); ++i) from[i] -= times * x[i];
}

// Takes out of `x` what lies along `axis`.
void make_orthogonal(std::span<double> x, const Vector& axis) {
  const double length = dot(axis, axis);
  if (length > 0) subtract(x, axis, dot(x, axis) / length);
}

// Uniform in +-sqrt(3): variance 1, and bounded.
void fill_noise(const Draw& draw, std::uint64_t stream, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = std::sqrt(3.0) * (2.0 * draw.uniform(static_cast<std::int64_t>(i), stream) - 1.0);
}

// What q and k of a KV head share: two directions, each as q has it and as k has it. The scores of all
// keys lie along the first, what some rows see besides along the second. q's of one is orthogonal to k's
// of the other. Signs and uneven lengths, so that no permutation of dims keeps them and the roundings
// of the dims differ.
struct Directions {
  Directions(const Draw& shared, std::size_t dims)
      : q_first(dims), k_first(dims), q_second(dims), k_second(dims) {
    for (std::size_t i = 0; i < dims; ++i) {
      const auto d = static_cast<std::int64_t>(i);
      q_first[i] = shared.sign(d) * (0.8 + 0.45 * shared.uniform(d, 1));
      k_first[i] = 1.0 / (q_first[i] * static_cast<double>(dims));  // q_first.k_first = 1
    }
    fill_noise(shared, 4, q_second);
    make_orthogonal(q_second, k_first);
    k_second = q_second;
    make_orthogonal(k_second, q_first);
    const double product = dot(q_second, k_second);
    // Below a few dims there is no room for a second one.
    for (double& x : k_second) x = dims < 4 ? 0.0 : x / product;
  }
  // Orthogonal to both, as the other operand has them: noise that changes no score along them.
  void clean(std::span<double> noise, const Vector& first, Vector second) const {
    make_orthogonal(second, first);
    make_orthogonal(noise, first);
    make_orthogonal(noise, second);
  }
  Vector q_first, k_first, q_second, k_second;
};

// The peak of a group is its first key, its last, or any.
bool is_peak(const RowPlace& row) {
  const std::int64_t group = row.s / kGroup;
  const std::int64_t keys = std::min(kGroup, row.p.seqlen_k - group * kGroup);
  const std::int64_t place = row.s - group * kGroup;
  if (group % 3 == 0) return place == keys - 1;
  if (group % 3 == 1) return place == 0;
  return place == row.shared_draw().below(keys, group, 2);
}

bool is_faint(const RowPlace& row) {
  const std::int64_t place = row.s % kGroup;
  if (is_peak(row)) return false;
  if (place == kFaintPlace) return true;
  RowPlace before = row;
  before.s = row.s - 1;
  return place == kNextFaintPlace && is_peak(before);
}

void fill_q(const RowPlace& row, std::span<double> out) {
  const Draw draw = row.draw();
  const Directions directions(row.shared_draw(), out.size());
  fill_noise(draw, 0, out);
  directions.clean(out, directions.k_first, directions.k_second);
  subtract(out, directions.q_first, -(1.0 + kRows * (draw.uniform(0, 1) - 0.5)));
  if (draw.below(kFalling, 0, 2) == 0) subtract(out, directions.q_second, -1.0);
}

void fill_k(const RowPlace& row, std::span<double> out) {
  const Directions directions(row.shared_draw(), out.size());
  const std::int64_t group = row.s / kGroup;
  const std::int64_t groups = (row.p.seqlen_k + kGroup - 1) / kGroup;
  const double scale = row.p.softmax_scale, dims = static_cast<double>(out.size());

  double score = kFirstPeak - kBelow;
  std::fill(out.begin(), out.end(), 0.0);
  if (is_peak(row)) {
    const double place = static_cast<double>(group + 1) / static_cast<double>(groups);
    score = kFirstPeak + kRise * place;
    // A row that sees the second direction sees the peaks fall instead.
    subtract(out, directions.k_second, -kRise * (1.0 - 2.0 * place) / scale);
  } else {
    if (is_faint(row)) score = kFirstPeak - kFaint;
    fill_noise(row.draw(), 0, out);
    directions.clean(out, directions.q_first, directions.q_second);
    const double spread = kSpread / (scale * std::sqrt(dims));
    for (double& x : out) x *= spread;
  }
  subtract(out, directions.k_first, -score / scale);
}

void fill_v(const RowPlace& row, std::span<double> out) {
  const Draw draw = row.draw(), shared = row.shared_draw();
  const auto dims = static_cast<std::int64_t>(out.size());
  // The keys of a run take the dims in turn; where they begin differs from run to run.
  const std::int64_t run = row.s / dims;
  const std::int64_t spike = (row.s % dims + shared.below(dims, run, 3)) % dims;
  const double height = is_peak(row) ? kPeakSpike : is_faint(row) ? kFaintSpike : kSpike;
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

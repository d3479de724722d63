#include "harness/xray/row_of_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn_diag::xraying {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A weight is seen where its error is at most this part of it.
constexpr double kSeen = 0.125;
// A weight that by the reference is this many times what can be seen is missing, not invisible.
constexpr double kClearly = 16.0;

double error_of(const RowInput& row, double w) { return row.relative + row.absolute / w; }
bool seen(const RowInput& row, double w) { return w > 0 && error_of(row, w) <= kSeen; }
// The error of ln w, for a weight that is seen.
double log_error(const RowInput& row, double w) { return -std::log1p(-error_of(row, w)); }

// Whether ln w + anchor is the reference's score, within all bounds, for every weight that is seen.
bool fits(const RowInput& row, double anchor, double anchor_error) {
  for (std::size_t j = 0; j < row.weight.size(); ++j) {
    const double w = row.weight[j], s = row.score[j];
    if (std::isnan(w)) return false;
    if (!seen(row, w) || !std::isfinite(s)) continue;
    const double limit = row.score_bound[j] + log_error(row, w) + anchor_error;
    if (!(std::fabs(std::log(w) + anchor - s) <= limit)) return false;
  }
  return true;
}

struct Anchor {
  double value = 0, error = 0;
};

// Where the largest weight that is seen has the reference's score.
std::optional<Anchor> anchor_of_reference(const RowInput& row) {
  std::size_t top = row.weight.size();
  for (std::size_t j = 0; j < row.weight.size(); ++j)
    if (seen(row, row.weight[j]) && std::isfinite(row.score[j]) &&
        (top == row.weight.size() || row.weight[j] > row.weight[top]))
      top = j;
  if (top == row.weight.size()) return std::nullopt;
  return Anchor{row.score[top] - std::log(row.weight[top]),
                row.score_bound[top] + log_error(row, row.weight[top])};
}

// A constant added to all scores of a row is not visible in its weights: lse says it. Where the weights
// are right up to a factor without it, lse is what is wrong.
Anchor choose_anchor(const RowInput& row, bool& without_lse) {
  const bool finite = row.lse && std::isfinite(*row.lse);
  const Anchor own{finite ? *row.lse : row.reference_lse, row.lse_bound};
  without_lse = !finite;
  if (finite && fits(row, own.value, own.error)) return own;
  const std::optional<Anchor> other = anchor_of_reference(row);
  if (!other || !fits(row, other->value, other->error)) return own;
  without_lse = true;
  return *other;
}

}  // namespace

void scores_of_row(const RowInput& row, RowScores& out) {
  const std::size_t keys = row.weight.size();
  out.score.assign(keys, -kInfinity);
  out.uncertainty.assign(keys, 0.0);
  const Anchor anchor = choose_anchor(row, out.without_lse);
  out.anchor = anchor.value;
  for (std::size_t j = 0; j < keys; ++j) {
    const double w = row.weight[j];
    const bool masked = row.score[j] == -kInfinity;
    const double expected = masked ? 0.0 : std::exp(row.score[j] - row.reference_lse);
    const bool missing = expected > kClearly * (std::fabs(w) + row.absolute);
    if (row.relative == kInfinity) {
      out.uncertainty[j] = kInfinity;
    } else if (std::isnan(w) || w < 0) {
      out.score[j] = kNaN;
    } else if (seen(row, w)) {
      out.score[j] = std::log(w) + anchor.value;
      out.uncertainty[j] = log_error(row, w) + anchor.error + std::fabs(out.score[j]) * 0x1p-23;
    } else if (w > 0) {
      // Any weight at all is too much where the mask has none.
      out.score[j] = std::log(w) + anchor.value;
      out.uncertainty[j] = masked    ? anchor.error
                           : missing ? std::log1p(error_of(row, w)) + anchor.error
                                     : kInfinity;
    } else {
      out.uncertainty[j] = masked || missing ? 0.0 : kInfinity;
    }
  }
}

void tiles_of_row(const RowInput& row, const RowScores& scores, const Problem& problem,
                  const Geometry& g, RowTiles& out) {
  const std::int32_t tiles = num_kv_tiles(problem, g);
  const auto n = static_cast<std::size_t>(tiles);
  for (auto* x : {&out.m, &out.l, &out.m_uncertainty, &out.l_uncertainty}) x->assign(n, 0.0);
  out.p.assign(row.weight.size(), 0.0);
  out.p_uncertainty.assign(row.weight.size(), 0.0);
  double m = -kInfinity, m_error = 0;
  bool hidden = false;  // a key of the frame whose score is not known
  for (std::int32_t t = 0; t < tiles; ++t) {
    const auto at = static_cast<std::size_t>(t);
    if (t % g.tiles_per_split == 0 || g.frame == Frame::kTile) {
      m = -kInfinity;
      m_error = 0;
      hidden = false;
    }
    const auto begin = at * static_cast<std::size_t>(g.tile.block_n);
    const auto end = std::min(begin + static_cast<std::size_t>(g.tile.block_n), row.weight.size());
    for (std::size_t j = begin; j < end; ++j) {
      const double s = scores.score[j], error = scores.uncertainty[j];
      if (error == kInfinity) {
        hidden = true;
      } else if (s > m || std::isnan(s)) {
        m = s;
        m_error = std::max(m_error, error);
      } else if (s + 2 * error >= m && std::isfinite(s)) {
        m_error = std::max(m_error, error);
      }
    }
    // Where nothing of the frame is seen but something may be there, nothing can be said.
    const bool unknown = m == -kInfinity && hidden;
    out.m[at] = m;
    out.m_uncertainty[at] = unknown ? kInfinity : m_error;
    for (std::size_t j = begin; j < end; ++j) {
      const double s = scores.score[j], error = scores.uncertainty[j];
      double& p = out.p[j];
      double& p_error = out.p_uncertainty[j];
      p = m == -kInfinity ? 0.0 : std::exp(s - m);
      if (unknown)
        p_error = kInfinity;
      else if (error == kInfinity)
        p_error = 2 * (row.weight[j] + row.absolute) * std::exp(scores.anchor - m + m_error);
      else
        p_error = p * (std::expm1(error + m_error) + 0x1p-23);
      out.l[at] += p;
      out.l_uncertainty[at] += p_error;
    }
  }
}

}  // namespace attn_diag::xraying

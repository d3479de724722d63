#include "attn_diag/reference/coarse_bounds.h"

#include <algorithm>
#include <cmath>

#include "reference/infinity.h"
#include "reference/mask.h"
#include "reference/rounding.h"
#include "reference/widen.h"

namespace attn_diag::reference {
namespace {

// Norms of the rows of one head.
struct Norms {
  std::vector<double> norm;
  double largest = 0;          // norm
  double largest_element = 0;  // inf: one is not finite
};
Norms norms_of(const void* data, const Problem& p, std::int32_t heads, std::int32_t seqlen,
               std::int32_t dim, std::int32_t batch, std::int32_t head) {
  Norms out;
  std::vector<double> row(static_cast<std::size_t>(dim));
  for (std::int32_t i = 0; i < seqlen; ++i) {
    widen_rows(data, p.dtype, p.layout, heads, seqlen, dim, batch, head, i, i + 1, row.data());
    double squares = 0;
    for (const double x : row) {
      squares += x * x;
      const double size = std::fabs(x);
      out.largest_element = size <= out.largest_element ? out.largest_element
                            : std::isfinite(size)       ? size
                                                        : kInf;
    }
    out.norm.push_back(std::sqrt(squares) * kRoom);
    out.largest = std::max(out.largest, out.norm.back());
  }
  if (!std::isfinite(out.largest_element)) out.largest = kInf;
  return out;
}

// The largest error of a score whose sum of magnitudes is at most `a`, |k| at most `k_norm`: docs/bounds.md, "qk".
double score_error(const Problem& p, const ErrorModel& model, double a, double k_norm,
                   double largest_q) {
  const double n = p.head_dim, scale = std::fabs(static_cast<double>(p.softmax_scale));
  const double u = model.op.u, g = gamma(n, model.dot_u);
  const Rounding narrow = narrowing_to(model.declared.scaled_q);
  double error = 0, limit = std::min(model.op.largest, model.scores.largest);
  if (model.declared.scale_applied_to_q) {
    error = scale * a * ((1 + g) * (1 + u) * (1 + narrow.u) - 1) +
            (model.op.tiny + narrow.tiny) * (1 + narrow.u) * (1 + g) * std::sqrt(n) * k_norm +
            n * model.op.tiny * (1 + g);
    if (!(largest_q * scale * (1 + u) <= narrow.largest)) return kInf;
    limit /= std::max(scale, 1e-300);
  } else {
    error = scale * a * ((1 + g) * (1 + u) - 1) + (scale + 1) * (n + 1) * model.op.tiny * (1 + g);
    limit /= std::max(1.0, scale);
  }
  error += model.scores.u * (scale * a + error) + model.scores.tiny * std::max(1.0, scale);
  return a * (1 + (1 + g) * (1 + u) * (1 + narrow.u)) < limit ? error * kRoom : kInf;
}

// Relative and absolute error of what a row's weights multiply, and of their sum, in the frame of the row's own max.
struct WeightErrors {
  double relative = kInf, absolute = kInf;
};
WeightErrors weight_errors(const Problem& p, const Geometry& g, const ErrorModel& model, double a,
                           double score, std::int64_t keys) {
  const double scale = std::fabs(static_cast<double>(p.softmax_scale)), u = model.op.u;
  const double n = static_cast<double>(keys), steps = ceil_div(p.seqlen_k, g.tile.block_n),
               splits = g.has_split_merge ? g.num_splits : 0;
  const double distance = 2 * scale * a + 2 * score;  // of any score from any max
  const double log_sum = std::log(n);
  double stored = 0;  // of m, or of an lse, of a split
  if (g.has_split_merge && model.stats.u > 0) {
    const double size = scale * a + score + log_sum + 0.125;
    if (!(std::max(size, n * 2) <= model.stats.largest)) return {};
    stored = model.stats.u * size + model.stats.tiny;
  }
  const double argument = score + u * (distance + score) + 2 * stored;
  const double frame = score + stored;
  if (!(argument < 1) || !(frame < 0.25)) return {};
  const double rho = model.exp_relative(distance + argument + frame);
  const double weight = expm1_above(argument) * (1 + rho) + rho;
  const double step = expm1_above(u * (distance + 2 * frame) + 2 * stored) * (1 + rho) + rho + u;
  const double sums = gamma(n, model.dot_u);
  if (!(sums < 1)) return {};
  const double rescales = std::pow((1 + step) * (1 + 2 * u), 2 * (steps + splits)) *
                          (1 + (splits > 0 ? model.partial.u + model.stats.u : 0));
  WeightErrors e;
  e.relative = (1 + weight) * (1 + model.probs.u) * (1 + sums) * rescales - 1;
  const double lost = 6 * model.declared.exp_flush + model.exp_abs + model.probs.tiny +
                      4 * model.op.tiny + (splits > 0 ? model.partial.tiny + model.stats.tiny : 0);
  e.absolute = (steps + splits + 1) * n * lost * exp_above(4 * frame) * (1 + e.relative);
  return e;
}

void bound_row(const Problem& p, const Geometry& g, const ErrorModel& model, const Norms& q,
               const Norms& k, const Norms& v, std::int32_t query, double& o, double& lse,
               CoarseBounds& of_all) {
  const std::int64_t keys = visible_keys(p, query).size();
  o = lse = 0;
  if (keys == 0) return;
  const double a = q.norm[static_cast<std::size_t>(query)] * k.largest;
  const double score =
      std::isfinite(a) ? score_error(p, model, a, k.largest, q.largest_element) : kInf;
  of_all.scores_finite = of_all.scores_finite && score < kInf;
  o = lse = kInf;
  if (!(score < kInf)) return;
  of_all.largest_score =
      std::max(of_all.largest_score, std::fabs(static_cast<double>(p.softmax_scale)) * a + score);
  const WeightErrors e = weight_errors(p, g, model, a, score, keys);
  const double off = e.relative + e.absolute;  // of l, which is 1 at least
  // As in the reference's bounds: more cannot be said of an l that is stored narrow.
  const bool stored = g.has_split_merge && model.stats.u > 0;
  if (!(off < (stored ? 0.0625 : 0.5))) return;
  const double scale = std::fabs(static_cast<double>(p.softmax_scale)), u = model.op.u;
  const double log_l = std::log(static_cast<double>(keys)), log_error = -std::log1p(-off);
  const double error = log_error + model.declared.log_abs +
                       model.declared.log_ulp * 0x1p-24 * std::max(log_l + log_error, 0x1p-126);
  lse = kRoom * (error + u * (scale * a + log_l + score + error));
  const double n = static_cast<double>(keys), largest_v = v.largest_element;
  const double most = 2 * n * largest_v * (1 + off);
  if (!(most <= std::min(model.op.largest, model.partial.largest))) return;
  double bound = 2 * off * largest_v / (1 - off) + 4 * n * model.op.tiny;
  bound += gamma(2, u) * (largest_v + bound) + 2 * model.op.tiny;
  bound += model.output.u * (largest_v + bound) + model.output.tiny;
  if (largest_v + bound <= model.output.largest) o = bound * kRoom;
}

}  // namespace

CoarseBounds coarse_bounds(const Problem& p, const Geometry& g, const Arithmetic& arithmetic,
                           const Inputs& inputs) {
  const ErrorModel model(arithmetic);
  CoarseBounds out;
  for (std::int32_t b = 0; b < p.batch; ++b) {
    Norms k, v;
    for (std::int32_t h = 0; h < p.heads; ++h) {
      if (h % group_size(p) == 0) {
        const std::int32_t kv = kv_head_of(p, h);
        k = norms_of(inputs.k, p, p.kv_heads, p.seqlen_k, p.head_dim, b, kv);
        v = norms_of(inputs.v, p, p.kv_heads, p.seqlen_k, p.head_dim_v, b, kv);
      }
      const Norms q = norms_of(inputs.q, p, p.heads, p.seqlen_q, p.head_dim, b, h);
      for (std::int32_t i = 0; i < p.seqlen_q; ++i) {
        double o = 0, lse = 0;
        bound_row(p, g, model, q, k, v, i, o, lse, out);
        out.o.push_back(o);
        out.lse.push_back(lse);
      }
    }
  }
  return out;
}

ConsistencyLimits::ConsistencyLimits(const Problem& p, const Geometry& g, const Arithmetic& a) {
  const ErrorModel model(a);
  const bool splits = g.has_split_merge;
  x_u = model.op.u;
  x_dot_u = std::max(model.op.u, model.dot_u);
  x_tiny = model.op.tiny;
  x_probs_u = model.probs.u;
  x_probs_tiny = model.probs.tiny;
  x_partial_u = splits ? model.partial.u : 0;
  x_partial_tiny = splits ? model.partial.tiny : 0;
  x_stats_u = splits ? model.stats.u : 0;
  x_output_u = model.output.u;
  x_output_tiny = model.output.tiny;
  x_output_largest = model.output.largest;
  x_largest = std::min(model.op.largest, splits ? model.partial.largest : model.op.largest);
  x_exp_ulp = a.exp_ulp;
  x_exp_ulp_per_x = a.exp_ulp_per_x;
  x_exp_flush = a.exp_flush;
  x_log_ulp = a.log_ulp;
  x_log_abs = a.log_abs;
  x_steps = ceil_div(p.seqlen_k, g.tile.block_n) + (splits ? g.num_splits : 0);
}

double ConsistencyLimits::sum_of_probs(std::int64_t keys, double sum) const {
  // P may be recorded before it is rounded and summed after, or the reverse.
  const auto n = static_cast<double>(keys);
  const double sums = gamma(n + 1, x_dot_u);
  return kRoom * (sum * ((1 + x_probs_u) * (1 + sums) - 1) + n * (x_probs_tiny + x_tiny));
}

double ConsistencyLimits::sum_below_one(std::int64_t keys, double m) const {
  // The largest score is its own max: exp is of 0, or of two products that should be equal and are not quite.
  const double argument = 4 * x_u * std::fabs(m) + 2 * x_stats_u * (std::fabs(m) + 1);
  const auto n = static_cast<double>(keys), steps = static_cast<double>(x_steps);
  const double rho = (x_exp_ulp + x_exp_ulp_per_x * argument) * 0x1p-24;
  const double sums = gamma(n + 2 * steps + 2, x_dot_u);
  if (!(argument < 1) || !(sums < 1)) return kInf;
  const double relative = expm1_above(argument) + steps * (rho + expm1_above(argument)) + rho +
                          sums + x_probs_u + x_stats_u;
  return kRoom * (relative * (1 + relative) + x_probs_tiny);
}

double ConsistencyLimits::log_sum_exp(double m, double l) const {
  const double log_l = std::fabs(std::log(l)), size = std::fabs(m) + log_l;
  // Two roundings of the sum and its terms, and two more for a change of the base.
  return kRoom * (4 * x_u * size + x_log_ulp * 0x1p-24 * std::max(log_l, 0x1p-126) + x_log_abs +
                  2 * x_stats_u * (size + 0.125) + x_tiny);
}

double ConsistencyLimits::outside_of_v(std::int64_t keys, double lse, double largest_v) const {
  // l and o come from the same weights, whatever these are: only summing, rounding and rescaling may differ.
  const auto n = static_cast<double>(keys), steps = static_cast<double>(x_steps);
  const double size = std::isfinite(lse) ? std::fabs(lse) + 1 : 1;
  const double argument = 4 * x_u * size + 2 * x_stats_u * (size + 0.125);
  const double rho = (x_exp_ulp + x_exp_ulp_per_x * (size + argument)) * 0x1p-24;
  const double sums = gamma(n + 4 * steps + 4, x_dot_u);
  if (!(argument < 1) || !(sums < 0.25)) return kInf;
  const double one = sums + x_probs_u + x_partial_u + x_stats_u + rho + expm1_above(argument);
  // Each P is rounded once, and what it lost only shrinks from tile to tile; partial sums are rounded in each.
  const double off =
      2 * one * (1 + 2 * one) + n * x_probs_tiny + steps * n * (x_partial_tiny + x_exp_flush);
  if (!(off < 0.5) || !(2 * n * largest_v <= x_largest)) return kInf;
  double bound = largest_v * off / (1 - off) + n * (2 * x_tiny + x_partial_tiny);
  bound += gamma(2, x_u) * (largest_v + bound) + 2 * x_tiny;
  bound += x_output_u * (largest_v + bound) + x_output_tiny;
  return largest_v + bound <= x_output_largest ? kRoom * bound : kInf;
}

}  // namespace attn_diag::reference

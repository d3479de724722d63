#include "reference/bounds.h"

#include <algorithm>
#include <cmath>

#include "reference/bounds_reduce.h"
#include "reference/infinity.h"
#include "reference/mask.h"
#include "reference/matrix.h"
#include "reference/row_functions.h"

namespace attn_diag::reference {
namespace {

// Beyond this, e^frame tells nothing any more.
constexpr double kLargestFrameError = 600;

void resize(const Plan& plan, const BlockValues& values, BlockBounds& bounds) {
  const auto rows = static_cast<std::size_t>(values.rows);
  for (std::size_t t = 0; t < kNumTensors; ++t) bounds.tensor[t].resize(values.tensor[t].size());
  bounds.abs_q.resize(rows * static_cast<std::size_t>(plan.problem.head_dim));
  bounds.weights.resize(values.tensor[static_cast<std::size_t>(Tensor::kP)].size());
  bounds.frame.resize(rows * static_cast<std::size_t>(plan.tiles));
  bounds.running.resize(rows * static_cast<std::size_t>(plan.tiles));
  bounds.scratch.resize(static_cast<std::size_t>(plan.problem.seqlen_k));
  bounds.abs_partial_o.resize(
      plan.pv && cuts_within_tiles(plan.problem, plan.geometry)
          ? values.tensor[static_cast<std::size_t>(Tensor::kPartialO)].size()
          : 0);
}

// docs/bounds.md, section "qk".
void bound_scores(const Plan& plan, const ErrorModel& model, const KvMagnitudes& kv,
                  const BlockValues& values, BlockBounds& bounds) {
  const Eigen::Index dim = plan.problem.head_dim, sk = plan.problem.seqlen_k;
  const double scale = std::fabs(static_cast<double>(plan.problem.softmax_scale));
  const bool scale_q = plan.arithmetic.scale_applied_to_q;
  const Rounding narrow = narrowing_to(plan.arithmetic.scaled_q);
  const double n = static_cast<double>(dim);
  const double u = model.op.u, gamma_n = gamma(n, model.dot_u);

  // |error| <= relative * scale |q||k| + per_k * sum |k| + absolute.
  double relative = (1 + gamma_n) * (1 + u) - 1, per_k = 0;
  double absolute = (scale + 1) * (n + 1) * model.op.tiny * (1 + gamma_n);
  if (scale_q) {
    relative = (1 + gamma_n) * (1 + u) * (1 + narrow.u) - 1;
    per_k = (model.op.tiny + narrow.tiny) * (1 + narrow.u) * (1 + gamma_n);
    absolute = n * model.op.tiny * (1 + gamma_n);
  }
  const double row_relative = relative * scale * kRoom, row_per_k = per_k * kRoom,
               row_absolute = absolute * kRoom;
  // Above this some partial sum, or the scaled result, may overflow.
  const Rounding& store = model.scores;
  const double stored_tiny = store.tiny * std::max(1.0, scale) * kRoom;
  const double largest_dot = std::min(model.op.largest, store.largest) / (1 + relative) /
                             std::max(1.0, scale_q ? 0 : scale);

  RowOut(bounds.abs_q.data(), values.rows * dim) = RowIn(values.q.data(), values.rows * dim).abs();
  const KeyRange any = values.any_keys;
  double* e = bounds[Tensor::kS];
  if (!any.empty())
    multiply(bounds.abs_q.data(), dim, values.rows, plan.problem.head_dim, kv.k, 0, any.begin,
             any.end, e, sk);
  for (std::int32_t r = 0; r < values.rows; ++r) {
    const KeyRange keys = values.keys[static_cast<std::size_t>(r)];
    double* row = e + r * sk;
    const double* s = values[Tensor::kS] + r * sk;
    if (keys.empty()) {
      std::fill(row, row + sk, 0.0);
      continue;
    }
    std::fill(row, row + keys.begin, 0.0);
    std::fill(row + keys.end, row + sk, 0.0);
    double q_limit = largest_dot;
    if (scale_q) {
      const double largest_q = RowIn(bounds.abs_q.data() + r * dim, dim).maxCoeff() * scale;
      q_limit = largest_dot / std::max(scale, 1e-300);
      if (!(largest_q * (1 + u) <= narrow.largest)) q_limit = -1;
    }
    for (std::int32_t j = keys.begin; j < keys.end; ++j) {
      const double a = row[j];
      double bound =
          row_relative * a + row_per_k * kv.k_sum[static_cast<std::size_t>(j)] + row_absolute;
      // S in a narrower type, before or after the scale: one rounding of what was computed.
      bound += store.u * kRoom * (std::fabs(s[j]) + bound) + stored_tiny;
      row[j] = a < q_limit ? bound : kInf;
    }
  }
}

// S is given: exact, but where it is no number; before the scale, with the rounding of that, and to the type in
// which the kernel may keep it.
void bound_given_scores(const Plan& plan, const ErrorModel& model, const BlockValues& values,
                        BlockBounds& bounds) {
  const Eigen::Index sk = plan.problem.seqlen_k;
  const bool raw = plan.arithmetic.part == Part::kFromRawScores;
  const double relative = raw ? kRoom * (model.op.u + model.scores.u * (1 + model.op.u)) : 0;
  const double absolute = raw ? kRoom * (model.op.tiny + model.scores.tiny) : 0;
  for (std::int32_t r = 0; r < values.rows; ++r) {
    const KeyRange keys = values.keys[static_cast<std::size_t>(r)];
    const double* s = values[Tensor::kS] + r * sk;
    double* row = bounds[Tensor::kS] + r * sk;
    std::fill(row, row + sk, 0.0);
    for (std::int32_t j = keys.begin; j < keys.end; ++j)
      row[j] = std::isfinite(s[j]) ? relative * std::fabs(s[j]) + absolute : kInf;
  }
}

// P is given: exact, and so are m and l. What is left are the products and their sums.
void bound_given_probs(const Plan& plan, const ErrorModel& model, const BlockValues& values,
                       std::int32_t r, BlockBounds& bounds) {
  const Eigen::Index sk = plan.problem.seqlen_k;
  const std::int64_t cell = std::int64_t{r} * plan.tiles;
  const double* p = values[Tensor::kP] + r * sk;
  std::fill_n(bounds[Tensor::kP] + r * sk, sk, 0.0);
  for (const Tensor t : {Tensor::kM, Tensor::kL}) std::fill_n(bounds[t] + cell, plan.tiles, 0.0);
  std::fill_n(bounds.frame.data() + cell, plan.tiles, 0.0);
  std::fill_n(bounds.running.data() + cell, plan.tiles, 0.0);
  // In any order of all keys, however the kernel cuts them.
  const double relative = gamma(values.keys[static_cast<std::size_t>(r)].size(), model.dot_u);
  double* weights = bounds.weights.data() + r * sk;
  for (Eigen::Index j = 0; j < sk; ++j)
    weights[j] = std::isfinite(p[j]) ? std::fabs(p[j]) * relative : kInf;
}

// Replaces the error of S by that of the reference's S rounded to the kernel's type, with what fp64
// itself may have got wrong, so that the kernel and this run need not agree to the last bit.
void take_scores_as_given(const ErrorModel& model, const KeyRange& keys, const double* s,
                          const double* bound, double* e) {
  for (std::int32_t j = keys.begin; j < keys.end; ++j)
    e[j] = (model.op.u + model.scores.u * (1 + model.op.u)) * std::fabs(s[j]) + model.op.tiny +
           model.scores.tiny + 0x1p-28 * bound[j];
}

// How far the computed maximum over a range can be from m: the largest and the smallest that the
// largest computed score can be.
struct MaxRange {
  double high = -kInf, low = -kInf;

  double error_of(double m) const {
    if (high == -kInf && m == -kInf) return 0;
    const double e = std::max(high - m, m - low);
    return e < kLargestFrameError ? e : kInf;
  }
};
MaxRange join(const MaxRange& a, const MaxRange& b) {
  if (std::isnan(a.high) || std::isnan(b.high)) return {kInf, -kInf};
  return {std::max(a.high, b.high), std::max(a.low, b.low)};
}

// The error weights w of one tile of one row: |computed P_j - P_j| <= w_j in the frame of P, but
// for the frame's own error. Before P is rounded to the type of P.V.
void bound_weights(const ErrorModel& model, double frame, std::int32_t n, const double* s,
                   const double* p, const double* e, double m, double* argument, double* w) {
  const double u = model.op.u;
  for (std::int32_t j = 0; j < n; ++j) argument[j] = e[j] + u * (m - s[j] + e[j] + frame);
  const double most = largest(argument, static_cast<std::size_t>(n));
  const double rho0 = model.declared.exp_ulp * 0x1p-24,
               rho1 = model.declared.exp_ulp_per_x * 0x1p-24;
  const double flush = 6 * model.declared.exp_flush * exp_above(frame);
  const double absolute = model.exp_abs * exp_above(frame);
  if (most <= 1) {
    for (std::int32_t j = 0; j < n; ++j) {
      const double d = argument[j];
      const double rho = rho0 + rho1 * (m - s[j] + d + frame);
      const double theta = rho + (d + d * d) * (1 + rho);  // e^d <= 1 + d + d^2 for d <= 1
      const double relative = p[j] * (theta > u ? theta : u);
      const double lost = p[j] < flush ? p[j] : 0.0;
      w[j] = (relative > lost ? relative : lost) + absolute;
    }
    return;
  }
  for (std::int32_t j = 0; j < n; ++j) {
    const double d = argument[j], x = m - s[j];
    const double rho = rho0 + rho1 * (x + d + frame);
    w[j] = std::max(std::exp(d - x) * (1 + rho) - p[j], p[j]) + absolute;
  }
}

// Fills one tile of one row with "nothing can be said".
void give_up(const KeyRange& tile, std::int64_t cell, double* p_bound, double* weights,
             BlockBounds& bounds) {
  std::fill(p_bound + tile.begin, p_bound + tile.end, kInf);
  std::fill(weights + tile.begin, weights + tile.end, kInf);
  bounds[Tensor::kL][cell] = kInf;
}

// docs/bounds.md, section "softmax". Leaves in bounds.weights what bound_pv multiplies |v| by, and in
// the bound of l its error in the exact frame (bound_reduce goes on from there).
void bound_softmax(const Plan& plan, const ErrorModel& model, const BlockValues& values,
                   std::int32_t r, BlockBounds& bounds) {
  const bool isolate = plan.options.mode == BoundMode::kIsolate;
  const Eigen::Index sk = plan.problem.seqlen_k;
  const KeyRange row_keys = values.keys[static_cast<std::size_t>(r)];
  const double* s = values[Tensor::kS] + r * sk;
  const double* p = values[Tensor::kP] + r * sk;
  const double* s_bound = bounds[Tensor::kS] + r * sk;
  double* p_bound = bounds[Tensor::kP] + r * sk;
  double* weights = bounds.weights.data() + r * sk;
  const double* e = s_bound;
  if (isolate && !row_keys.empty()) {
    take_scores_as_given(model, row_keys, s, s_bound, bounds.scratch.data());
    e = bounds.scratch.data();
  }
  const double u = model.op.u, up = model.probs.u;
  // S <= m, but not where S is given and narrowed after that, and m is given as it is.
  const bool below_m = !(isolate && model.scores.u > 0);
  const double largest_p =
      below_m ? (1 + model.declared.exp_ulp * 0x1p-24) * (1 + up) : model.op.largest;
  MaxRange running;
  double running_m = -kInf;
  for (std::int32_t t = 0; t < plan.tiles; ++t) {
    const std::int64_t cell = std::int64_t{r} * plan.tiles + t;
    if (t % plan.geometry.tiles_per_split == 0) running = {}, running_m = -kInf;
    const KeyRange tile = keys_of_tile(plan.problem, plan.geometry, t);
    const KeyRange keys = intersect(tile, row_keys);
    const std::int32_t n = keys.size();
    const double m = values[Tensor::kM][cell], l = values[Tensor::kL][cell];
    MaxRange here;
    if (n > 0) {
      const Range range =
          largest_within(s + keys.begin, e + keys.begin, static_cast<std::size_t>(n));
      here = {range.high, range.low};
    }
    running = join(running, here);
    running_m = plan.geometry.frame == Frame::kRunning ? m : std::max(running_m, m);
    bounds.running[static_cast<std::size_t>(cell)] = running.error_of(running_m);
    const double frame = plan.geometry.frame == Frame::kRunning
                             ? bounds.running[static_cast<std::size_t>(cell)]
                             : here.error_of(m);
    bounds.frame[static_cast<std::size_t>(cell)] = frame;
    bounds[Tensor::kM][cell] = frame * kRoom;
    if (!(frame < kInf)) {
      give_up(tile, cell, p_bound, weights, bounds);
      continue;
    }
    std::fill(p_bound + tile.begin, p_bound + tile.end, 0.0);
    std::fill(weights + tile.begin, weights + tile.end, 0.0);
    bounds[Tensor::kL][cell] = 0;
    if (n == 0) continue;

    double* w = weights + keys.begin;
    double* b = p_bound + keys.begin;
    const double* pk = p + keys.begin;
    bound_weights(model, frame, n, s + keys.begin, pk, e + keys.begin, m, b, w);
    const double rounding_sum = gamma(n - 1, u);
    double sum_w = sum(w, static_cast<std::size_t>(n));
    const double p_tiny = model.probs.tiny * exp_above(frame);
    if (up > 0) {
      RowOut(w, n) = RowIn(w, n) * (1 + up) + RowIn(pk, n) * up + p_tiny;
      if (plan.arithmetic.l_from_rounded_probs) sum_w = sum(w, static_cast<std::size_t>(n));
    }
    bounds[Tensor::kL][cell] = sum_w * (1 + rounding_sum) + rounding_sum * l;
    const double grow = exp_above(frame) * kRoom, shift = expm1_above(frame) * kRoom;
    for (std::int32_t j = 0; j < n; ++j) {
      const double bound = w[j] * grow + pk[j] * shift;
      b[j] = bound < largest_p ? bound : largest_p;
    }
    if (!plan.pv) continue;
    const double gamma_pv = gamma(n, model.dot_u);
    if (isolate) {
      const double relative = (1 + u) * (1 + up) * (1 + gamma_pv) - 1;
      const double absolute = (model.op.tiny + model.probs.tiny) * (1 + gamma_pv) * 2;
      RowOut(w, n) = RowIn(pk, n) * relative + absolute;
    } else {
      RowOut(w, n) = RowIn(w, n) * (1 + gamma_pv) + RowIn(pk, n) * gamma_pv;
    }
  }
}

// docs/bounds.md, section "pv": the error of partial_o in the exact frame.
void bound_pv(const Plan& plan, const ErrorModel& model, const KvMagnitudes& magnitudes,
              const BlockValues& values, BlockBounds& bounds) {
  const Eigen::Index sk = plan.problem.seqlen_k, dim = plan.problem.head_dim_v;
  const bool isolate = plan.options.mode == BoundMode::kIsolate;
  const Stride between_rows(plan.tiles * dim);
  for (std::int32_t t = 0; t < plan.tiles; ++t) {
    const KeyRange tile = keys_of_tile(plan.problem, plan.geometry, t);
    const KeyRange keys = intersect(tile, values.any_keys);
    MatrixOut out(bounds[Tensor::kPartialO] + t * dim, values.rows, dim, between_rows);
    if (!bounds.abs_partial_o.empty()) {
      double* const abs = bounds.abs_partial_o.data() + t * dim;
      MatrixOut(abs, values.rows, dim, between_rows).setZero();
      if (!keys.empty())
        multiply(values[Tensor::kP] + keys.begin, sk, values.rows, keys.size(), magnitudes.v,
                 keys.begin, 0, plan.problem.head_dim_v, abs, plan.tiles * dim);
    }
    if (keys.empty())
      out.setZero();
    else
      multiply(bounds.weights.data() + keys.begin, sk, values.rows, keys.size(), magnitudes.v,
               keys.begin, 0, plan.problem.head_dim_v, out.data(), plan.tiles * dim);
    for (std::int32_t r = 0; r < values.rows; ++r) {
      const std::int64_t cell = std::int64_t{r} * plan.tiles + t;
      const double frame = bounds.frame[static_cast<std::size_t>(cell)];
      const double grow = isolate ? 1 : exp_above(frame);
      const std::int32_t n = intersect(tile, values.keys[static_cast<std::size_t>(r)]).size();
      const double sum_p = values[Tensor::kL][cell] + bounds[Tensor::kL][cell];
      double absolute = n * model.op.tiny * 2 * grow;
      if (!(frame < kInf) ||
          !(sum_p * grow * magnitudes.largest_v * (1 + gamma(n, model.dot_u)) <= model.op.largest))
        absolute = kInf;
      out.row(r).array() += absolute;
    }
    if (magnitudes.v_finite) continue;
    // A kernel that multiplies a masked P = 0 by NaN or infinity gets NaN, in every row of the tile.
    for (std::int32_t j = tile.begin; j < tile.end; ++j)
      for (Eigen::Index d = 0; d < dim; ++d)
        if (!std::isfinite(magnitudes.v.at(j, static_cast<std::int32_t>(d))))
          out.col(d).setConstant(kInf);
  }
}

}  // namespace

KvMagnitudes magnitudes(const Plan& plan, const KvHead& kv) {
  const Problem& p = plan.problem;
  KvMagnitudes m;
  m.k = kv.k.abs();
  m.v = kv.v.abs();
  m.k_sum.assign(static_cast<std::size_t>(p.seqlen_k), 0.0);
  for (std::int32_t j = 0; j < p.seqlen_k; ++j)
    for (std::int32_t d = 0; d < p.head_dim; ++d)
      m.k_sum[static_cast<std::size_t>(j)] += m.k.at(d, j);
  for (std::int32_t j = 0; j < m.v.depth(); ++j)
    for (std::int32_t d = 0; d < p.head_dim_v; ++d)
      if (std::isfinite(m.v.at(j, d)))
        m.largest_v = std::max(m.largest_v, m.v.at(j, d));
      else
        m.v_finite = false;
  return m;
}

void compute_bounds(const Plan& plan, const ErrorModel& model, const KvMagnitudes& magnitudes,
                    const BlockValues& values, BlockBounds& bounds) {
  resize(plan, values, bounds);
  const Part part = plan.arithmetic.part;
  if (part == Part::kFromScores || part == Part::kFromRawScores)
    bound_given_scores(plan, model, values, bounds);
  else
    bound_scores(plan, model, magnitudes, values, bounds);
  for (std::int32_t r = 0; plan.softmax && r < values.rows; ++r)
    if (part == Part::kFromProbs)
      bound_given_probs(plan, model, values, r, bounds);
    else
      bound_softmax(plan, model, values, r, bounds);
  if (plan.pv) bound_pv(plan, model, magnitudes, values, bounds);
  if (plan.softmax)
    for (std::int32_t r = 0; r < values.rows; ++r) bound_reduce(plan, model, values, r, bounds);
}

}  // namespace attn_diag::reference

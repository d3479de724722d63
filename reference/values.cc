#include "reference/values.h"

#include <algorithm>
#include <cmath>

#include "reference/infinity.h"
#include "reference/matrix.h"
#include "reference/row_functions.h"
#include "reference/widen.h"

namespace attn_diag::reference {
namespace {

// The larger; NaN if either is.
double max_or_nan(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return std::max(a, b);
}

// exp(m - frame), 0 for a part that has seen nothing (m = -inf), whatever the frame.
double weight(double m, double frame) { return m == -kInf ? 0.0 : std::exp(m - frame); }

void resize(const Plan& plan, BlockValues& block) {
  const auto rows = static_cast<std::size_t>(block.rows);
  block.keys.resize(rows);
  block.q.resize(rows * static_cast<std::size_t>(plan.problem.head_dim));
  block.scaled_q.resize(block.q.size());
  block.last_m.resize(rows);
  block.last_l.resize(rows);
  for (const TensorInfo& t : kTensors) {
    const bool has_dim = t.rank > 3 && t.axes[static_cast<std::size_t>(t.rank - 1)] == Axis::kDim;
    const bool needed = t.stage == Stage::kQk || (has_dim ? plan.pv : plan.softmax);
    const bool reduced = t.stage == Stage::kReduce;
    const std::size_t cells = needed && (!reduced || plan.reduce)
                                  ? rows * static_cast<std::size_t>(plan.cells_per_row(t.id))
                                  : 0;
    block.tensor[static_cast<std::size_t>(t.id)].resize(cells);
  }
}

// S = scale * q k^T where visible, -inf elsewhere.
void compute_scores(const Plan& plan, const KvHead& kv, BlockValues& block) {
  const Problem& p = plan.problem;
  const Eigen::Index dim = p.head_dim, sk = p.seqlen_k;
  for (std::int32_t r = 0; r < block.rows; ++r)
    widen_rows(plan.inputs.q, p.dtype, p.layout, p.heads, p.seqlen_q, p.head_dim, block.batch,
               block.head, block.queries[r], block.queries[r] + 1, block.q.data() + r * dim);
  // Given before scale and mask S is q.k as it lies in memory, of all keys: whatever is masked rounds nothing else.
  const bool raw = plan.arithmetic.part == Part::kFromRawScores;
  const double scale = raw ? 1.0 : static_cast<double>(p.softmax_scale);
  RowOut(block.scaled_q.data(), block.rows * dim) = RowIn(block.q.data(), block.rows * dim) * scale;

  block.any_keys = {p.seqlen_k, 0};
  for (std::int32_t r = 0; r < block.rows; ++r) {
    const KeyRange keys = visible_keys(p, block.queries[r]);
    block.keys[static_cast<std::size_t>(r)] = keys;
    if (keys.empty()) continue;
    block.any_keys.begin = std::min(block.any_keys.begin, keys.begin);
    block.any_keys.end = std::max(block.any_keys.end, keys.end);
  }
  const KeyRange any = raw ? KeyRange{0, p.seqlen_k} : block.any_keys;
  double* s = block[Tensor::kS];
  if (!any.empty())
    multiply(block.scaled_q.data(), dim, block.rows, p.head_dim, kv.k, 0, any.begin, any.end, s,
             sk);
  for (std::int32_t r = 0; r < block.rows; ++r) {
    const KeyRange keys = block.keys[static_cast<std::size_t>(r)];
    double* row = s + r * sk;
    if (keys.empty()) {
      std::fill(row, row + sk, -kInf);
    } else {
      std::fill(row, row + keys.begin, -kInf);
      std::fill(row + keys.end, row + sk, -kInf);
    }
  }
}

// What the kernel is given: S as it lies in its memory, and then scaled if it is not yet.
void narrow_given_scores(const Plan& plan, BlockValues& block) {
  double* s = block[Tensor::kS];
  const std::int64_t cells = std::int64_t{block.rows} * plan.problem.seqlen_k;
  for (std::int64_t i = 0; i < cells; ++i) s[i] = narrowed(plan.arithmetic.scores, s[i]);
  if (plan.arithmetic.part != Part::kFromRawScores) return;
  const auto scale = static_cast<double>(plan.problem.softmax_scale);
  for (std::int32_t r = 0; r < block.rows; ++r) {
    const KeyRange keys = block.keys[static_cast<std::size_t>(r)];
    double* row = s + std::int64_t{r} * plan.problem.seqlen_k;
    for (std::int32_t j = keys.begin; j < keys.end; ++j) row[j] *= scale;
  }
}

// For a kernel that is given P: exp(S - lse) as it lies in the kernel's memory, each row in the frame of m = 0.
// Its row sums are not 1, and nothing is divided by them.
void compute_given_probs(const Plan& plan, BlockValues& block) {
  const Eigen::Index sk = plan.problem.seqlen_k;
  for (std::int32_t r = 0; r < block.rows; ++r) {
    const KeyRange keys = block.keys[static_cast<std::size_t>(r)];
    const double* s = block[Tensor::kS] + r * sk;
    double* p = block[Tensor::kP] + r * sk;
    double* m = block[Tensor::kM] + std::int64_t{r} * plan.tiles;
    double* l = block[Tensor::kL] + std::int64_t{r} * plan.tiles;
    std::fill(p, p + sk, 0.0);
    std::fill(m, m + plan.tiles, keys.empty() ? -kInf : 0.0);
    std::fill(l, l + plan.tiles, 0.0);
    if (keys.empty()) continue;
    const auto n = static_cast<std::size_t>(keys.size());
    const double sum = exp_shifted(s + keys.begin, n, largest(s + keys.begin, n), p + keys.begin);
    for (std::int32_t j = keys.begin; j < keys.end; ++j)
      p[j] = narrowed(plan.arithmetic.probs, p[j] / sum);
  }
}

// m, P and l of every tile, in the frame the geometry declares.
void compute_softmax(const Plan& plan, BlockValues& block) {
  const Eigen::Index sk = plan.problem.seqlen_k;
  for (std::int32_t r = 0; r < block.rows; ++r) {
    const KeyRange row_keys = block.keys[static_cast<std::size_t>(r)];
    const double* s = block[Tensor::kS] + r * sk;
    double* p = block[Tensor::kP] + r * sk;
    double* m = block[Tensor::kM] + std::int64_t{r} * plan.tiles;
    double* l = block[Tensor::kL] + std::int64_t{r} * plan.tiles;
    double running = -kInf;
    for (std::int32_t t = 0; t < plan.tiles; ++t) {
      if (t % plan.geometry.tiles_per_split == 0) running = -kInf;
      const KeyRange tile = keys_of_tile(plan.problem, plan.geometry, t);
      const KeyRange keys = intersect(tile, row_keys);
      const double most = largest(s + keys.begin, static_cast<std::size_t>(keys.size()));
      running = max_or_nan(running, most);
      m[t] = plan.geometry.frame == Frame::kRunning ? running : most;
      // most = -inf with keys in sight: their scores overflowed; m may be -inf, and
      // exp(-inf - -inf) would be NaN.
      if (keys.empty() || most == -kInf) {
        std::fill(p + tile.begin, p + tile.end, 0.0);
        l[t] = 0;
        continue;
      }
      std::fill(p + tile.begin, p + keys.begin, 0.0);
      std::fill(p + keys.end, p + tile.end, 0.0);
      l[t] =
          exp_shifted(s + keys.begin, static_cast<std::size_t>(keys.size()), m[t], p + keys.begin);
    }
  }
}

// partial_o = P_t V_t of every tile.
void compute_pv(const Plan& plan, const KvHead& kv, BlockValues& block) {
  const Eigen::Index sk = plan.problem.seqlen_k, dim = plan.problem.head_dim_v;
  const Eigen::Index between_rows = plan.tiles * dim;
  for (std::int32_t t = 0; t < plan.tiles; ++t) {
    const KeyRange keys = intersect(keys_of_tile(plan.problem, plan.geometry, t), block.any_keys);
    double* const out = block[Tensor::kPartialO] + t * dim;
    if (keys.empty())
      MatrixOut(out, block.rows, dim, Stride(between_rows)).setZero();
    else
      multiply(block[Tensor::kP] + keys.begin, sk, block.rows, keys.size(), kv.v, keys.begin, 0,
               plan.problem.head_dim_v, out, between_rows);
  }
}

// The online recurrence of one row, over each split's tiles.
void compute_running(const Plan& plan, std::int32_t r, BlockValues& block) {
  const Eigen::Index dim = plan.problem.head_dim_v;
  const std::int64_t at = std::int64_t{r} * plan.tiles;
  const double* m = block[Tensor::kM] + at;
  const double* l = block[Tensor::kL] + at;
  double* running_m = block[Tensor::kRunningM] + at;
  double* running_l = block[Tensor::kRunningL] + at;
  for (std::int32_t t = 0; t < plan.tiles; ++t) {
    const bool first = t % plan.geometry.tiles_per_split == 0;
    const double before = first ? -kInf : running_m[t - 1];
    running_m[t] = max_or_nan(before, m[t]);
    const double alpha = weight(before, running_m[t]);
    const double beta = weight(m[t], running_m[t]);
    running_l[t] = (first ? 0.0 : alpha * running_l[t - 1]) + beta * l[t];
    if (!plan.pv) continue;
    const RowIn part(block[Tensor::kPartialO] + (at + t) * dim, dim);
    RowOut sum(block[Tensor::kRunningO] + (at + t) * dim, dim);
    if (first)
      sum = beta * part;
    else
      sum = alpha * RowIn(block[Tensor::kRunningO] + (at + t - 1) * dim, dim) + beta * part;
  }
}

// The merge of the splits of one row, and its output.
void compute_merge(const Plan& plan, std::int32_t r, BlockValues& block) {
  const Eigen::Index dim = plan.problem.head_dim_v;
  const std::int64_t at = std::int64_t{r} * plan.tiles;
  const double* running_m = block[Tensor::kRunningM] + at;
  const double* running_l = block[Tensor::kRunningL] + at;
  double m = -kInf;
  for (std::int32_t n = 0; n < plan.splits; ++n) {
    const KeyRange tiles = tiles_of_split(plan.problem, plan.geometry, n);
    if (!tiles.empty()) m = max_or_nan(m, running_m[tiles.end - 1]);
  }
  double l = 0;
  double* merged_l = block[Tensor::kMergedL];
  double* merged_o = block[Tensor::kMergedO];
  RowOut o(plan.pv ? block[Tensor::kO] + r * dim : nullptr, plan.pv ? dim : 0);
  o.setZero();
  for (std::int32_t n = 0; n < plan.splits; ++n) {
    const KeyRange tiles = tiles_of_split(plan.problem, plan.geometry, n);
    if (!tiles.empty()) {
      const std::int32_t last = tiles.end - 1;
      const double w = weight(running_m[last], m);
      l += w * running_l[last];
      if (plan.pv) o += w * RowIn(block[Tensor::kRunningO] + (at + last) * dim, dim);
    }
    const std::int64_t cell = std::int64_t{r} * plan.splits + n;
    merged_l[cell] = l;
    if (plan.pv) RowOut(merged_o + cell * dim, dim) = o;
  }
  if (plan.arithmetic.part == Part::kFromProbs) l = 1;
  block.last_m[static_cast<std::size_t>(r)] = m;
  block.last_l[static_cast<std::size_t>(r)] = l;
  block[Tensor::kLse][r] = m == -kInf ? -kInf : m + std::log(l);
  if (m == -kInf)
    o.setZero();
  else
    o /= l;
}

}  // namespace

KvHead widen_kv_head(const Plan& plan, std::int32_t batch, std::int32_t kv_head) {
  const Problem& p = plan.problem;
  KvHead kv;
  kv.k = Panels(p.head_dim, p.seqlen_k);
  std::vector<double> row(static_cast<std::size_t>(std::max(p.head_dim, p.head_dim_v)));
  for (std::int32_t key = 0; key < p.seqlen_k; ++key) {
    widen_rows(plan.inputs.k, p.dtype, p.layout, p.kv_heads, p.seqlen_k, p.head_dim, batch, kv_head,
               key, key + 1, row.data());
    for (std::int32_t d = 0; d < p.head_dim; ++d)
      kv.k.at(d, key) = row[static_cast<std::size_t>(d)];
  }
  if (!plan.pv) return kv;
  kv.v = Panels(p.seqlen_k, p.head_dim_v);
  for (std::int32_t key = 0; key < p.seqlen_k; ++key) {
    widen_rows(plan.inputs.v, p.dtype, p.layout, p.kv_heads, p.seqlen_k, p.head_dim_v, batch,
               kv_head, key, key + 1, row.data());
    for (std::int32_t d = 0; d < p.head_dim_v; ++d)
      kv.v.at(key, d) = row[static_cast<std::size_t>(d)];
  }
  return kv;
}

void compute_values(const Plan& plan, const KvHead& kv, std::int32_t batch, std::int32_t head,
                    const std::int32_t* queries, std::int32_t rows, BlockValues& block) {
  block.batch = batch;
  block.head = head;
  block.queries = queries;
  block.rows = rows;
  resize(plan, block);
  compute_scores(plan, kv, block);
  const Part part = plan.arithmetic.part;
  if (part == Part::kFromScores || part == Part::kFromRawScores) narrow_given_scores(plan, block);
  if (plan.softmax && plan.arithmetic.part == Part::kFromProbs)
    compute_given_probs(plan, block);
  else if (plan.softmax)
    compute_softmax(plan, block);
  if (plan.pv) compute_pv(plan, kv, block);
  if (!plan.reduce) return;
  for (std::int32_t r = 0; r < rows; ++r) {
    compute_running(plan, r, block);
    compute_merge(plan, r, block);
  }
}

}  // namespace attn_diag::reference

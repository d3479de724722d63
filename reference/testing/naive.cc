#include "reference/testing/naive.h"

#include <algorithm>
#include <cmath>

namespace attn_diag::reference::testing {
namespace {

using Real = long double;
constexpr Real kInf = INFINITY;

bool sees(const Problem& p, int query, int key) {
  switch (p.mask.kind) {
    case MaskKind::kNone:
      return true;
    case MaskKind::kCausal:
      if (p.mask.alignment == CausalAlignment::kTopLeft) return key <= query;
      return key - p.seqlen_k <= query - p.seqlen_q;
    case MaskKind::kWindow: {
      const int distance = (key - p.seqlen_k) - (query - p.seqlen_q);
      return -p.mask.window_left <= distance && distance <= p.mask.window_right;
    }
  }
  return false;
}

// The largest score among the given keys; -inf if there are none.
Real largest(const std::vector<Real>& s, int begin, int end) {
  Real m = -kInf;
  for (int j = begin; j < end; ++j) m = std::max(m, s[static_cast<std::size_t>(j)]);
  return m;
}

// sum of exp(s_j - frame) * x_j over keys [begin, end); empty keys contribute nothing.
template <class X>
Real weighted_sum(const std::vector<Real>& s, int begin, int end, Real frame, X x) {
  Real sum = 0;
  for (int j = begin; j < end; ++j)
    if (s[static_cast<std::size_t>(j)] > -kInf)
      sum += std::exp(s[static_cast<std::size_t>(j)] - frame) * x(j);
  return sum;
}

}  // namespace

std::array<std::vector<double>, kNumTensors> naive_attention(const Case& c) {
  const Problem& p = c.problem;
  const Geometry& g = c.geometry;
  const int n = g.tile.block_n, tiles = (p.seqlen_k + n - 1) / n;
  std::array<std::vector<double>, kNumTensors> out;
  const auto put = [&](Tensor t, Real x) {
    out[static_cast<std::size_t>(t)].push_back(static_cast<double>(x));
  };
  const auto one = [](int) { return Real{1}; };
  std::vector<Real> s(static_cast<std::size_t>(p.seqlen_k));
  for (int b = 0; b < p.batch; ++b)
    for (int h = 0; h < p.heads; ++h)
      for (int i = 0; i < p.seqlen_q; ++i) {
        const int kv = h * p.kv_heads / p.heads;
        const auto v = [&](int j, int d) {
          return Real{element(c.v, p, p.kv_heads, p.seqlen_k, p.head_dim_v, b, kv, j, d)};
        };
        for (int j = 0; j < p.seqlen_k; ++j) {
          Real dot = 0;
          for (int d = 0; d < p.head_dim; ++d)
            dot += Real{element(c.q, p, p.heads, p.seqlen_q, p.head_dim, b, h, i, d)} *
                   element(c.k, p, p.kv_heads, p.seqlen_k, p.head_dim, b, kv, j, d);
          s[static_cast<std::size_t>(j)] = sees(p, i, j) ? p.softmax_scale * dot : -kInf;
          put(Tensor::kS, s[static_cast<std::size_t>(j)]);
        }
        for (int t = 0; t < tiles; ++t) {
          const int begin = t * n, end = std::min(begin + n, p.seqlen_k);
          const int split_begin = t / g.tiles_per_split * g.tiles_per_split * n;
          const Real running = largest(s, split_begin, end);
          const Real m = g.frame == Frame::kTile ? largest(s, begin, end) : running;
          put(Tensor::kM, m);
          put(Tensor::kL, weighted_sum(s, begin, end, m, one));
          for (int j = begin; j < end; ++j) put(Tensor::kP, weighted_sum(s, j, j + 1, m, one));
          put(Tensor::kRunningM, running);
          put(Tensor::kRunningL, weighted_sum(s, split_begin, end, running, one));
          for (int d = 0; d < p.head_dim_v; ++d) {
            const auto vd = [&](int j) { return v(j, d); };
            put(Tensor::kPartialO, weighted_sum(s, begin, end, m, vd));
            put(Tensor::kRunningO, weighted_sum(s, split_begin, end, running, vd));
          }
        }
        const Real m = largest(s, 0, p.seqlen_k);
        for (int split = 0; split < g.num_splits; ++split) {
          const int end = std::min((split + 1) * g.tiles_per_split * n, p.seqlen_k);
          put(Tensor::kMergedL, weighted_sum(s, 0, end, m, one));
          for (int d = 0; d < p.head_dim_v; ++d)
            put(Tensor::kMergedO, weighted_sum(s, 0, end, m, [&](int j) { return v(j, d); }));
        }
        const Real l = weighted_sum(s, 0, p.seqlen_k, m, one);
        put(Tensor::kLse, m > -kInf ? m + std::log(l) : -kInf);
        for (int d = 0; d < p.head_dim_v; ++d)
          put(Tensor::kO,
              m > -kInf ? weighted_sum(s, 0, p.seqlen_k, m, [&](int j) { return v(j, d); }) / l
                        : 0);
      }
  return out;
}

}  // namespace attn_diag::reference::testing

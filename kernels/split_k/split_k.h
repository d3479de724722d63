// Between split_k's adapter and its translation units, one per element type; and what the partial kernel
// leaves for the reduce kernel: the state of every row after each split.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn_diag/kernels/adapter.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

template <class Element>
Status run_split_k(const RunRequest& request);

struct Partials {
  float* gM;  // (batch, heads, num_splits, seqlen_q)  row max within the split
  float* gL;  // (batch, heads, num_splits, seqlen_q)  row sum, relative to gM
  float* gO;  // (batch, heads, num_splits, seqlen_q, head_dim_v)  unnormalised, relative to gM
};

// Rows of the partials: one per (batch, head, split, query).
constexpr std::int64_t num_partial_rows(const Problem& p, const Geometry& g) {
  return std::int64_t{p.batch} * p.heads * g.num_splits * p.seqlen_q;
}
constexpr ATTN_DIAG_HD std::int64_t partial_row(const Problem& p, const Geometry& g, int batch,
                                                int head, int split, int query) {
  return ((std::int64_t{batch} * p.heads + head) * g.num_splits + split) * p.seqlen_q + query;
}

constexpr std::size_t partials_bytes(const Problem& p, const Geometry& g) {
  return static_cast<std::size_t>(num_partial_rows(p, g)) * (2 + p.head_dim_v) * sizeof(float);
}
constexpr Partials partials_at(void* workspace, const Problem& p, const Geometry& g) {
  float* const base = static_cast<float*>(workspace);
  const std::int64_t rows = num_partial_rows(p, g);
  return {base, base + rows, base + 2 * rows};
}

}  // namespace attn_diag

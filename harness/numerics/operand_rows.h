// q, k and v of a capture, widened.
#pragma once

#include <cstdint>
#include <vector>

#include "attn_diag/harness/capture.h"

namespace attn_diag {

// Row `position` of q, k or v of query head `head`.
inline std::vector<double> operand_row(const Capture& c, char which, std::int32_t batch,
                                       std::int32_t head, std::int64_t position) {
  const Problem& p = c.problem;
  const bool of_q = which == 'q';
  const std::int32_t dim = which == 'v' ? p.head_dim_v : p.head_dim;
  const Strides s =
      dense_strides(p.layout, of_q ? p.heads : p.kv_heads, of_q ? p.seqlen_q : p.seqlen_k, dim);
  const std::int64_t begin =
      batch * s.batch + (of_q ? head : head / group_size(p)) * s.head + position * s.seq;
  const std::vector<std::byte>& bytes = of_q ? c.q : which == 'v' ? c.v : c.k;
  std::vector<double> row(static_cast<std::size_t>(dim));
  for (std::int32_t d = 0; d < dim; ++d)
    row[static_cast<std::size_t>(d)] = load_element(bytes.data(), p.dtype, begin + d);
  return row;
}

// All rows of k or v of a query head, dense (seqlen_k, dim).
inline std::vector<double> operand_rows(const Capture& c, char which, std::int32_t batch,
                                        std::int32_t head) {
  std::vector<double> rows;
  for (std::int64_t j = 0; j < c.problem.seqlen_k; ++j) {
    const std::vector<double> row = operand_row(c, which, batch, head, j);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

}  // namespace attn_diag

// Rows here and there: of long sequences a few say what all would, and each costs O(seqlen_k * head_dim) alone.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "attn_diag/reference/reference.h"

namespace attn_diag::reference {

// As RowBlock, but row r is query queries[r].
struct SampledBlock {
  RowBlock block;  // but for query_begin
  const std::int32_t* queries = nullptr;
};

// As for_each_row_block, of the given queries of each batch entry and head alone: ascending, each once, within
// options.query_begin and query_end.
void for_each_sampled_rows(const Problem& problem, const Geometry& geometry,
                           const Arithmetic& arithmetic, const Inputs& inputs,
                           const Options& options, const std::vector<std::int32_t>& queries,
                           const std::function<void(const SampledBlock&)>& visit);

}  // namespace attn_diag::reference

// One call of the reference, checked and resolved: what is to be computed, and in which pieces.
#pragma once

#include <cstdint>
#include <vector>

#include "attn_diag/reference/reference.h"

namespace attn_diag::reference {

struct Plan {
  Problem problem;
  Geometry geometry;
  Arithmetic arithmetic;
  Inputs inputs;
  Options options;  // ends and thread count resolved
  std::int32_t tiles = 0, splits = 0;
  std::int32_t rows_per_block = 0;
  std::vector<std::int32_t>
      queries;  // of each (batch, head): what query_begin to query_end say, or a sample
  // Stages that have to be computed for the wanted tensors.
  bool softmax = false, pv = false, reduce = false;

  bool wants(Tensor t) const { return (options.tensors & tensor_bit(t)) != 0; }
  // Cells of the tensor per (batch, head, query): the product of the axes after query.
  std::int64_t cells_per_row(Tensor t) const;
};

// Throws std::invalid_argument, with what was expected and what was found.
Plan make_plan(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic,
               const Inputs& inputs, const Options& options);
// For a sample of the queries.
Plan make_plan(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic,
               const Inputs& inputs, const Options& options,
               const std::vector<std::int32_t>& queries);

}  // namespace attn_diag::reference

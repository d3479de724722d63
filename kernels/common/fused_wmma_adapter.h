// What the adapters of the fused tensor-core kernels have in common.
#pragma once

#include "common/launch.h"

namespace attn_diag {

inline constexpr int kMaxWmmaHeadDim = 128;

inline Status plan_fused_wmma(const Problem& problem, TileShape tile, std::int32_t num_splits,
                              Geometry* geometry, char* error, std::size_t capacity) {
  if (const Status status = check_supported(problem, tile, kMaxWmmaHeadDim, error, capacity);
      status != Status::kOk)
    return status;
  if (num_splits > 1)
    return fail(Status::kUnsupported, error, capacity,
                "num_splits %d: the fused kernels run over all keys in one pass; use split_k",
                num_splits);
  constexpr int kMaxQueryTiles = 65535;  // of the grid's second dimension
  if (ceil_div(problem.seqlen_q, tile.block_m) > kMaxQueryTiles)
    return fail(Status::kUnsupported, error, capacity,
                "seqlen_q %d: with tile %dx%d the fused kernels take at most %d", problem.seqlen_q,
                tile.block_m, tile.block_n, kMaxQueryTiles * tile.block_m);
  *geometry = Geometry{};
  geometry->tile = tile;
  geometry->tiles_per_split = ceil_div(problem.seqlen_k, tile.block_n);
  geometry->skips_masked_tiles = true;
  return Status::kOk;
}

// P is rounded to 16 bits, and l sums what it was rounded to. (fused_wmma sums l on tensor cores: what
// they truncate is small beside the rounding of P.)
inline Arithmetic fused_wmma_arithmetic(const Problem& problem, const Geometry&) {
  Arithmetic arithmetic = fp32_arithmetic(problem);
  arithmetic.dot_ulp = 2.5;
  arithmetic.probs = problem.dtype;
  arithmetic.l_from_rounded_probs = true;
  return arithmetic;
}

// All but name, summary and run.
constexpr KernelInfo describe_fused_wmma() {
  KernelInfo info;
  info.tiles = kCompiledTiles;
  info.num_tiles = kNumCompiledTiles;
  info.gates = kCompiledGates;
  for (TensorExposure& exposure : info.exposure) exposure.exposed = true;
  for (Tensor merged : {Tensor::kMergedL, Tensor::kMergedO})
    info.exposure[static_cast<int>(merged)] = {
        false, "one running state per row: there are no splits to merge"};
  info.plan = plan_fused_wmma;
  info.arithmetic = fused_wmma_arithmetic;
  info.workspace_bytes = [](const Problem&, const Geometry&) -> std::size_t { return 0; };
  return info;
}

}  // namespace attn_diag

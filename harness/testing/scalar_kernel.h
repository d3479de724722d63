// What libraries of scalar test kernels share: fp32, one split, no workspace of their own.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>

#include "attn_diag/kernels/adapter.h"

namespace attn_diag::scalar_kernel {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline std::int64_t at(const Strides& s, int b, int h, int i, int d) {
  return b * s.batch + h * s.head + i * s.seq + d;
}

inline Status plan(const Problem& p, TileShape tile, std::int32_t, Geometry* geometry, char* error,
                   std::size_t error_capacity) {
  if (p.dtype != DType::kFp32) {
    std::snprintf(error, error_capacity, "only fp32.");
    return Status::kUnsupported;
  }
  *geometry = Geometry{};
  geometry->tile = tile;
  geometry->tiles_per_split = ceil_div(p.seqlen_k, tile.block_n);
  return Status::kOk;
}

inline Arithmetic arithmetic(const Problem&, const Geometry&) {
  Arithmetic a;
  a.output = DType::kFp32;
  return a;
}

}  // namespace attn_diag::scalar_kernel

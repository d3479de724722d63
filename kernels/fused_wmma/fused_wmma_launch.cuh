// Launch of fused_wmma for one element type: picks tile, head dimension and gate.
#pragma once

#include "fused_wmma/fused_wmma.h"

#include <cstdint>

#include "common/launch.h"
#include "common/mask.h"
#include "fused_wmma/fused_wmma_kernel.cuh"

namespace attn_diag {

// The compiled size that takes a head dimension. Small tiles are for looking at small cases, where
// speed does not matter.
template <int kBlockM, int kBlockN>
struct FusedWmmaTile {
  static constexpr bool kForSpeed = kBlockM >= 64;

  template <class F>
  static Status with_dim(int dim, F&& f) {
    if constexpr (kForSpeed)
      if (dim <= 32) return f(FusedWmmaTraits<kBlockM, kBlockN, 32>{});
    if (dim <= 64) return f(FusedWmmaTraits<kBlockM, kBlockN, 64>{});
    if constexpr (kForSpeed)
      if (dim <= 96) return f(FusedWmmaTraits<kBlockM, kBlockN, 96>{});
    return f(FusedWmmaTraits<kBlockM, kBlockN, 128>{});
  }
};

// True if every row of the tensors begins at a multiple of 16 bytes, so that they can be copied in
// pieces of that size.
inline bool rows_are_aligned(const RunRequest& request) {
  const auto aligned = [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  };
  return request.problem.head_dim % 8 == 0 && request.problem.head_dim_v % 8 == 0 &&
         aligned(request.q) && aligned(request.k) && aligned(request.v) && aligned(request.o);
}

template <class Element>
Status run_fused_wmma(const RunRequest& request) {
  const Problem& problem = request.problem;
  const Geometry& geometry = request.geometry;
  const AttentionTensors<Element> tensors = {
      static_cast<const Element*>(request.q), static_cast<const Element*>(request.k),
      static_cast<const Element*>(request.v), static_cast<Element*>(request.o), request.lse};
  const BandMask mask(problem);
  const bool aligned = rows_are_aligned(request);
  const int dim = problem.head_dim > problem.head_dim_v ? problem.head_dim : problem.head_dim_v;
  constexpr Status kNotCompiled = Status::kUnsupported;
  const Status status =
      with_traits<FusedWmmaTile>(geometry.tile, kNotCompiled, [&]<class Tile>(Tile) {
        return Tile::with_dim(dim, [&]<class Traits>(Traits) {
          return with_tap(request.gate, request.taps, kNotCompiled, [&]<class Tap>(const Tap& tap) {
            const dim3 grid(problem.heads, num_query_tiles(problem, geometry), problem.batch);
            return launch(request, "fused_wmma", fused_wmma_kernel<Traits, Element, BandMask, Tap>,
                          grid, dim3(Traits::kThreads), Traits::kSharedBytes, problem, tensors,
                          mask, aligned, tap);
          });
        });
      });
  return explain_unsupported(status, request);
}

}  // namespace attn_diag

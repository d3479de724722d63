// Launch of fused_wmma_simple for one element type: picks tile and gate.
#pragma once

#include "fused_wmma_simple/fused_wmma_simple.h"

#include "common/launch.h"
#include "common/mask.h"
#include "fused_wmma_simple/fused_wmma_simple_kernel.cuh"

namespace attn_diag {

template <class Element>
Status run_fused_wmma_simple(const RunRequest& request) {
  const Problem& problem = request.problem;
  const Geometry& geometry = request.geometry;
  const AttentionTensors<Element> tensors = {
      static_cast<const Element*>(request.q), static_cast<const Element*>(request.k),
      static_cast<const Element*>(request.v), static_cast<Element*>(request.o), request.lse};
  const BandMask mask(problem);
  constexpr Status kNotCompiled = Status::kUnsupported;
  const Status status =
      with_traits<FusedWmmaSimpleTraits>(geometry.tile, kNotCompiled, [&]<class Traits>(Traits) {
        return with_tap(request.gate, request.taps, kNotCompiled, [&]<class Tap>(const Tap& tap) {
          const dim3 grid(num_query_tiles(problem, geometry), problem.heads, problem.batch);
          return launch(request, "fused_wmma_simple",
                        fused_wmma_simple_kernel<Traits, Element, BandMask, Tap>, grid,
                        dim3(Traits::kThreads),
                        FusedWmmaSimpleTiles<Traits>(problem.head_dim, problem.head_dim_v).bytes,
                        problem, tensors, mask, tap);
        });
      });
  return explain_unsupported(status, request);
}

}  // namespace attn_diag

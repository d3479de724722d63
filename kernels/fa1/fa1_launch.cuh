// Launch of fa1 for one element type: picks tile and gate.
#pragma once

#include "common/launch.h"
#include "fa1/fa1.h"
#include "fa1/fa1_kernel.cuh"

namespace attn_diag {

template <class Element>
Status run_fa1(const RunRequest& request) {
  const Problem& problem = request.problem;
  const Geometry& geometry = request.geometry;
  const AttentionTensors<Element> tensors = {
      static_cast<const Element*>(request.q), static_cast<const Element*>(request.k),
      static_cast<const Element*>(request.v), static_cast<Element*>(request.o), request.lse};
  const BandMask mask(problem);
  constexpr Status kNotCompiled = Status::kUnsupported;
  const Status status =
      with_traits<KernelTraits>(geometry.tile, kNotCompiled, [&]<class Traits>(Traits) {
        return with_tap(request.gate, request.taps, kNotCompiled, [&]<class Tap>(const Tap& tap) {
          const dim3 grid(num_query_tiles(problem, geometry), problem.heads, problem.batch);
          return launch(request, "fa1", fa1_kernel<Traits, Element, BandMask, Tap>, grid,
                        dim3(Traits::kThreads),
                        Traits::shared_bytes(problem.head_dim, problem.head_dim_v), problem,
                        tensors, mask, tap);
        });
      });
  return explain_unsupported(status, request);
}

}  // namespace attn_diag

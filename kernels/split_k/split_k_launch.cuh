// Launch of split_k for one element type: picks tile and gate; partial kernel, then reduce kernel.
#pragma once

#include "common/launch.h"
#include "split_k/split_k.h"
#include "split_k/split_k_kernels.cuh"

namespace attn_diag {

template <class Element>
Status run_split_k(const RunRequest& request) {
  const Problem& problem = request.problem;
  const Geometry& geometry = request.geometry;
  const AttentionTensors<Element> tensors = {
      static_cast<const Element*>(request.q), static_cast<const Element*>(request.k),
      static_cast<const Element*>(request.v), static_cast<Element*>(request.o), request.lse};
  const Partials partials = partials_at(request.workspace, problem, geometry);
  const BandMask mask(problem);
  constexpr Status kNotCompiled = Status::kUnsupported;
  const Status done =
      with_tap(request.gate, request.taps, kNotCompiled, [&]<class Tap>(const Tap& tap) {
        const Status status =
            with_traits<KernelTraits>(geometry.tile, kNotCompiled, [&]<class Traits>(Traits) {
              const dim3 grid(num_query_tiles(problem, geometry), geometry.num_splits,
                              problem.batch * problem.heads);
              return launch(request, "split_k partial",
                            split_k_partial_kernel<Traits, Element, BandMask, Tap>, grid,
                            dim3(Traits::kThreads),
                            Traits::shared_bytes(problem.head_dim, problem.head_dim_v), problem,
                            geometry, tensors, mask, partials, tap);
            });
        if (status != Status::kOk || tap.ends_before(Stage::kReduce)) return status;
        const dim3 grid(ceil_div(problem.seqlen_q, ReduceTraits::kRowsPerBlock), problem.heads,
                        problem.batch);
        return launch(request, "split_k reduce", split_k_reduce_kernel<Element, Tap>, grid,
                      dim3(ReduceTraits::kThreads), ReduceTraits::shared_bytes(geometry.num_splits),
                      problem, geometry, partials, tensors.gO, tensors.gLse, tap);
      });
  return explain_unsupported(done, request);
}

}  // namespace attn_diag

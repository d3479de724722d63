// fa1's adapter: what the harness sees of the kernel.
#include "fa1/fa1.h"

#include "common/kernel_traits.h"
#include "common/launch.h"

namespace attn_diag {
namespace {

constexpr int kMaxHeadDim = KernelTraits<64, 64>::kMaxHeadDim;

Status plan(const Problem& problem, TileShape tile, std::int32_t num_splits, Geometry* geometry,
            char* error, std::size_t capacity) {
  if (const Status status = check_supported(problem, tile, kMaxHeadDim, error, capacity);
      status != Status::kOk)
    return status;
  if (num_splits > 1)
    return fail(Status::kUnsupported, error, capacity,
                "num_splits %d: fa1 runs over all keys in one pass; use split_k", num_splits);
  *geometry = Geometry{};
  geometry->tile = tile;
  geometry->tiles_per_split = ceil_div(problem.seqlen_k, tile.block_n);
  geometry->skips_masked_tiles = true;
  return Status::kOk;
}

Arithmetic arithmetic(const Problem& problem, const Geometry&) { return fp32_arithmetic(problem); }

std::size_t workspace_bytes(const Problem&, const Geometry&) { return 0; }

Status run(const RunRequest& request) {
  return with_element(request, [&]<class Element>(std::type_identity<Element>) {
    return run_fa1<Element>(request);
  });
}

constexpr KernelInfo describe() {
  KernelInfo info;
  info.name = "fa1";
  info.summary = "one pass over the KV tiles with online softmax; a block per query tile";
  info.tiles = kCompiledTiles;
  info.num_tiles = kNumCompiledTiles;
  info.gates = kCompiledGates;
  for (TensorExposure& exposure : info.exposure) exposure.exposed = true;
  for (Tensor merged : {Tensor::kMergedL, Tensor::kMergedO})
    info.exposure[static_cast<int>(merged)] = {
        false, "fa1 keeps one running state per row: there are no splits to merge"};
  info.plan = plan;
  info.arithmetic = arithmetic;
  info.workspace_bytes = workspace_bytes;
  info.run = run;
  return info;
}

constexpr KernelInfo kKernel = describe();
constexpr KernelLibrary kLibrary = {kKernelAbiVersion, 1, &kKernel};

}  // namespace
}  // namespace attn_diag

extern "C" const attn_diag::KernelLibrary* attn_diag_kernel_library() {
  return &attn_diag::kLibrary;
}

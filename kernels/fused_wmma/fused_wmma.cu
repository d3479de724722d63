// The adapter of fused_wmma: what the harness sees of the kernel.
#include "fused_wmma/fused_wmma.h"

#include "common/fused_wmma_adapter.h"

namespace attn_diag {
namespace {

// 128 queries at a time need fewer loads of K and V, 64 make more blocks: 128 where there are two such
// blocks for each of 128 multiprocessors all the same.
TileShape default_tile(const Problem& problem) {
  constexpr TileShape kLarge{128, 64};
  const std::int64_t blocks =
      std::int64_t{problem.batch} * problem.heads * ceil_div(problem.seqlen_q, kLarge.block_m);
  return is_compiled(kLarge) && blocks >= 2 * 128 ? kLarge : kCompiledTiles[0];
}

constexpr KernelInfo describe() {
  KernelInfo info = describe_fused_wmma();
  info.name = "fused_wmma";
  info.summary = "tensor cores, a warp per row group: S, O in registers, K and V by cp.async";
  info.default_tile = default_tile;
  info.run = [](const RunRequest& request) {
    return with_element(request, [&]<class Element>(std::type_identity<Element>) {
      return run_fused_wmma<Element>(request);
    });
  };
  return info;
}

constexpr KernelInfo kKernel = describe();
constexpr KernelLibrary kLibrary = {kKernelAbiVersion, 1, &kKernel};

}  // namespace
}  // namespace attn_diag

extern "C" const attn_diag::KernelLibrary* attn_diag_kernel_library() {
  return &attn_diag::kLibrary;
}

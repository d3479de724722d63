// The adapter of fused_wmma: what the harness sees of the kernel.
#include "fused_wmma/fused_wmma.h"

#include "fused_wmma/compiled.h"

#include "common/fused_wmma_adapter.h"

namespace attn_diag {
namespace {

constexpr KernelInfo describe() {
  KernelInfo info = describe_fused_wmma();
  info.name = "fused_wmma";
  info.summary = "tensor cores, a warp per row group: S, O in registers, K and V by cp.async";
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

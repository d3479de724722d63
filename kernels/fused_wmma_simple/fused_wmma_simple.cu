// The adapter of fused_wmma_simple: what the harness sees of the kernel.
#include "fused_wmma_simple/fused_wmma_simple.h"

#include "common/fused_wmma_adapter.h"

namespace attn_diag {
namespace {

constexpr KernelInfo describe() {
  KernelInfo info = describe_fused_wmma();
  info.name = "fused_wmma_simple";
  info.summary = "tensor cores, stage by stage: S, P and O are tiles in shared memory";
  info.run = [](const RunRequest& request) {
    return with_element(request, [&]<class Element>(std::type_identity<Element>) {
      return run_fused_wmma_simple<Element>(request);
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

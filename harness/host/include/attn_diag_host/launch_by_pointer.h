// Launches whose arguments come as an array of pointers: cudaLaunchKernel, cudaLaunchCooperativeKernel.
#pragma once

#include "attn_diag_host/launch.h"

namespace attn_diag::host {

// `arguments[i]` points to the i-th argument.
template <class... Parameters, std::size_t... kIndex>
[[gnu::visibility("hidden")]] cudaError_t launch_by_pointers(const cudaLaunchConfig_t& config,
                                                             void (*kernel)(Parameters...),
                                                             [[maybe_unused]] void** arguments,
                                                             std::index_sequence<kIndex...>) {
  return cudaLaunchKernelEx(&config, kernel,
                            *static_cast<std::remove_cv_t<Parameters>*>(arguments[kIndex])...);
}

// For a kernel whose type is lost: cudaErrorInvalidDeviceFunction, with words.
cudaError_t refuse_untyped_launch(const char* call);

}  // namespace attn_diag::host

template <class... Parameters>
[[gnu::visibility("hidden")]] cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid,
                                                           dim3 block, void** arguments,
                                                           std::size_t shared = 0,
                                                           cudaStream_t stream = nullptr) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return attn_diag::host::launch_by_pointers(config, kernel, arguments,
                                             std::index_sequence_for<Parameters...>());
}
template <class... Parameters>
[[gnu::visibility("hidden")]] cudaError_t cudaLaunchCooperativeKernel(
    void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, std::size_t shared = 0,
    cudaStream_t stream = nullptr) {
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  return attn_diag::host::launch_by_pointers(config, kernel, arguments,
                                             std::index_sequence_for<Parameters...>());
}

// The source pass drops a cast of a kernel to void* where it is written in the call, so that these are for
// kernels whose address was kept as void*.
inline cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t = 0,
                                    cudaStream_t = nullptr) {
  return attn_diag::host::refuse_untyped_launch("cudaLaunchKernel");
}
inline cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, std::size_t = 0,
                                               cudaStream_t = nullptr) {
  return attn_diag::host::refuse_untyped_launch("cudaLaunchCooperativeKernel");
}

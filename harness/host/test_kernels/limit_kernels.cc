#include "harness/host/test_kernels/limit_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

cudaLaunchConfig_t one_block(int threads, std::size_t dynamic = 0) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = dynamic;
  return config;
}

template <int kColumns>
__global__ void static_beyond_limit_kernel() {
  [[maybe_unused]] __shared__ volatile char sK[512][kColumns], sV[512];
  sK[threadIdx.x][0] = 0;
  sV[threadIdx.x] = 0;
}

__global__ void static_and_dynamic_kernel() {
  [[maybe_unused]] __shared__ volatile char sQ[40 * 1024];
  sQ[threadIdx.x] = 0;
}

__global__ void dynamic_kernel() {}

}  // namespace

cudaError_t static_beyond_limit() {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, static_beyond_limit_kernel<100>);
}
cudaError_t static_and_dynamic(std::size_t dynamic) {
  cudaFuncSetAttribute(static_and_dynamic_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(dynamic));
  const auto config = one_block(32, dynamic);
  return cudaLaunchKernelEx(&config, static_and_dynamic_kernel);
}
cudaError_t dynamic_on(int architecture, std::size_t dynamic) {
  cudaFuncSetAttribute(dynamic_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(dynamic));
  attn_diag::host::KernelCall call{};
  call.kernel = reinterpret_cast<const void*>(&dynamic_kernel);
  call.call = [](const void*, const void*) { dynamic_kernel(); };
  call.architecture = architecture;
  return attn_diag::host::launch(one_block(32, dynamic), call);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE

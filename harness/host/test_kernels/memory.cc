#include "harness/host/test_kernels/test_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

cudaLaunchConfig_t blocks_of(int blocks, int threads, std::size_t dynamic_shared = 0) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = dynamic_shared;
  return config;
}

__device__ unsigned global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ int twice_through_shared(int value) {
  __shared__ int exchange[32];
  exchange[threadIdx.x] = value;
  return 2 * exchange[threadIdx.x];
}

// Notes what each thread finds in shared memory, and then writes there.
__global__ void static_shared_poison_kernel(std::uint32_t* out) {
  __shared__ std::uint32_t values[32];
  out[global_thread()] = values[threadIdx.x];
  values[threadIdx.x] = static_cast<std::uint32_t>(twice_through_shared(21));
}

template <class T>
__global__ void templated_shared_poison_kernel(T* out) {
  __shared__ T values[32];
  __shared__ float other;
  out[global_thread()] = values[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0 && other == other) out[global_thread()] = 0;  // poison is NaN
  values[threadIdx.x] = 3;
  other = 1;
}

__global__ void dynamic_shared_poison_kernel(std::size_t words, std::uint32_t* seen) {
  auto* memory = static_cast<std::uint32_t*>(attn_diag::host::dynamic_shared_memory());
  std::uint32_t all = ~0u;
  for (std::size_t i = threadIdx.x; i < words; i += blockDim.x) all &= memory[i];
  seen[global_thread()] = all;
  __syncthreads();
  for (std::size_t i = threadIdx.x; i < words; i += blockDim.x) memory[i] = 0;
}

__global__ void dynamic_shared_alignment_kernel(std::uint64_t* out) {
  out[threadIdx.x] = reinterpret_cast<std::uint64_t>(attn_diag::host::dynamic_shared_memory());
}

__global__ void touch_dynamic_shared_kernel(std::size_t bytes) {
  static_cast<unsigned char*>(attn_diag::host::dynamic_shared_memory())[bytes - 1] = 1;
}

__attribute__((noinline)) __device__ void look(std::uint32_t* memory, std::uint32_t* out) {
  *out = *memory;
  *memory = 0;
}

__global__ void local_poison_kernel(std::uint32_t* out) {
  std::uint32_t never_written[4];
  look(&never_written[2], &out[global_thread()]);
}

__global__ void large_locals_kernel(int* out) {
  int values[8192];  // 32 KiB
  const int t = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 8192; ++i) values[i] = t * 8192 + i;
  __syncthreads();
  int wrong = 0;
  for (int i = 0; i < 8192; ++i) wrong += values[i] != t * 8192 + i;
  out[t] = wrong;
}

__constant__ float g_constants[4];

__global__ void constant_memory_kernel(float* out) { out[threadIdx.x] = g_constants[threadIdx.x]; }

__global__ void wide_loads_kernel(const float* __restrict__ in, float* __restrict__ out,
                                  int count) {
  const int at = 4 * static_cast<int>(global_thread());
  if (at + 4 > count) return;
  float4 v = *reinterpret_cast<const float4*>(in + at);
  v = make_float4(v.w, v.z, v.y, v.x);
  *reinterpret_cast<float4*>(out + at) = v;
}

}  // namespace

cudaError_t static_shared_poison(int blocks, std::uint32_t* out) {
  const auto config = blocks_of(blocks, 32);
  return cudaLaunchKernelEx(&config, static_shared_poison_kernel, out);
}
cudaError_t templated_shared_poison(int blocks, std::uint32_t* out) {
  const auto config = blocks_of(blocks, 32);
  return cudaLaunchKernelEx(&config, templated_shared_poison_kernel<std::uint32_t>, out);
}
cudaError_t dynamic_shared_poison(int blocks, std::size_t bytes, std::uint32_t* seen) {
  const auto config = blocks_of(blocks, 32, bytes);
  return cudaLaunchKernelEx(&config, dynamic_shared_poison_kernel, bytes / 4, seen);
}
cudaError_t dynamic_shared_alignment(std::uint64_t* out) {
  const auto config = blocks_of(1, 2, 48);
  return cudaLaunchKernelEx(&config, dynamic_shared_alignment_kernel, out);
}
cudaError_t dynamic_shared_with_attribute(std::size_t bytes, int attribute_bytes) {
  if (const cudaError_t error =
          cudaFuncSetAttribute(touch_dynamic_shared_kernel,
                               cudaFuncAttributeMaxDynamicSharedMemorySize, attribute_bytes))
    return error;
  const auto config = blocks_of(1, 1, bytes);
  return cudaLaunchKernelEx(&config, touch_dynamic_shared_kernel, bytes);
}
cudaError_t local_poison(int blocks, std::uint32_t* out) {
  const auto config = blocks_of(blocks, 32);
  return cudaLaunchKernelEx(&config, local_poison_kernel, out);
}
cudaError_t large_locals(int threads, int* out) {
  const auto config = blocks_of(1, threads);
  return cudaLaunchKernelEx(&config, large_locals_kernel, out);
}
cudaError_t constant_memory(const float* values, float* out) {
  if (const cudaError_t error = cudaMemcpyToSymbol(g_constants, values, sizeof g_constants))
    return error;
  const auto config = blocks_of(1, 4);
  return cudaLaunchKernelEx(&config, constant_memory_kernel, out);
}
cudaError_t wide_loads(const float* in, float* out, int count) {
  const auto config = blocks_of((count + 127) / 128, 32);
  return cudaLaunchKernelEx(&config, wide_loads_kernel, in, out, count);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE

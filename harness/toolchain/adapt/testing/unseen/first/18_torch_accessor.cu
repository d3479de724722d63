#include <ATen/cuda/CUDAContext.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <torch/extension.h>
#include <limits>

#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) \
  CHECK_CUDA(x);       \
  CHECK_CONTIGUOUS(x)

template <typename scalar_t>
__global__ void attention_forward_kernel(
    const torch::PackedTensorAccessor32<scalar_t, 4, torch::RestrictPtrTraits> query,  // B,H,L,E
    const torch::PackedTensorAccessor32<scalar_t, 4, torch::RestrictPtrTraits> key,    // B,H,S,E
    const torch::PackedTensorAccessor32<scalar_t, 4, torch::RestrictPtrTraits> value,  // B,H,S,E
    torch::PackedTensorAccessor32<scalar_t, 4, torch::RestrictPtrTraits> output,       // B,H,L,E
    const float scale, const bool is_causal) {
  const int l = blockIdx.x * blockDim.x + threadIdx.x;
  const int h = blockIdx.y;
  const int b = blockIdx.z;
  if (l >= query.size(2)) return;

  const int S = key.size(2);
  const int E = query.size(3);
  const int last = is_causal ? min(l + 1, S) : S;

  // pass 1: max and denominator
  float row_max = -std::numeric_limits<float>::infinity();
  float denom = 0.f;
  for (int s = 0; s < last; ++s) {
    float dot = 0.f;
    for (int e = 0; e < E; ++e)
      dot += static_cast<float>(query[b][h][l][e]) * static_cast<float>(key[b][h][s][e]);
    dot *= scale;
    const float new_max = fmaxf(row_max, dot);
    denom = denom * expf(row_max - new_max) + expf(dot - new_max);
    row_max = new_max;
  }

  // pass 2: weighted sum of the values, recomputing the logits per 32 columns
  for (int e0 = 0; e0 < E; e0 += 32) {
    float acc[32] = {0.f};
    const int ne = min(32, E - e0);
    for (int s = 0; s < last; ++s) {
      float dot = 0.f;
      for (int e = 0; e < E; ++e)
        dot += static_cast<float>(query[b][h][l][e]) * static_cast<float>(key[b][h][s][e]);
      const float p = expf(dot * scale - row_max) / denom;
      for (int e = 0; e < ne; ++e) acc[e] += p * static_cast<float>(value[b][h][s][e0 + e]);
    }
    for (int e = 0; e < ne; ++e) output[b][h][l][e0 + e] = static_cast<scalar_t>(acc[e]);
  }
}

torch::Tensor attention_forward(torch::Tensor query, torch::Tensor key, torch::Tensor value,
                                double scale, bool is_causal) {
  CHECK_INPUT(query);
  CHECK_INPUT(key);
  CHECK_INPUT(value);

  const auto batch = query.size(0);
  const auto heads = query.size(1);
  const auto L = query.size(2);
  auto output = torch::empty_like(query);

  const int threads = 64;
  const dim3 blocks((L + threads - 1) / threads, heads, batch);

  AT_DISPATCH_FLOATING_TYPES_AND_HALF(
      query.scalar_type(), "attention_forward_cuda", ([&] {
        attention_forward_kernel<scalar_t>
            <<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
                query.packed_accessor32<scalar_t, 4, torch::RestrictPtrTraits>(),
                key.packed_accessor32<scalar_t, 4, torch::RestrictPtrTraits>(),
                value.packed_accessor32<scalar_t, 4, torch::RestrictPtrTraits>(),
                output.packed_accessor32<scalar_t, 4, torch::RestrictPtrTraits>(),
                static_cast<float>(scale), is_causal);
      }));
  return output;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &attention_forward, "Attention forward (CUDA)");
}

// A PyTorch extension as it is loaded by torch.utils.cpp_extension: the host function takes and returns
// tensors. Layout [batch][seqlen][heads][head_dim].
#include <torch/extension.h>

#include <cuda_runtime.h>

constexpr int BLOCK_N = 32;

// One warp a query: lanes score BLOCK_N keys at a time, then share the columns of the output. S may be
// null: scores for a debugger, as [batch][heads][seqlen][seqlen].
template <typename scalar_t>
__global__ void attention_kernel(const scalar_t* q, const scalar_t* k, const scalar_t* v,
                                 scalar_t* out, float* lse, float* S, int N, int H, int D,
                                 float scale, bool is_causal) {
  const int row = blockIdx.x, h = blockIdx.y, b = blockIdx.z, lane = threadIdx.x;
  const size_t head = ((size_t)b * N * H + h) * D;  // of row 0; rows are H * D apart
  extern __shared__ float o[];                      // (D)
  for (int d = lane; d < D; d += 32) o[d] = 0.0f;
  __syncwarp();
  const int keys = is_causal ? row + 1 : N;
  float m = -INFINITY, l = 0.0f;
  for (int n0 = 0; n0 < N; n0 += BLOCK_N) {
    const int key = n0 + lane;
    float s = -INFINITY;
    if (key < keys) {
      s = 0.0f;
      for (int d = 0; d < D; ++d)
        s += static_cast<float>(q[head + (size_t)row * H * D + d]) *
             static_cast<float>(k[head + (size_t)key * H * D + d]);
      s *= scale;
    }
    if (S != nullptr && key < N) S[(((size_t)b * H + h) * N + row) * N + key] = s;
    if (n0 >= keys) continue;
    float m_new = fmaxf(m, s);
    for (int i = 16; i > 0; i /= 2) m_new = fmaxf(m_new, __shfl_xor_sync(0xffffffff, m_new, i));
    const float p = __expf(s - m_new), rescale = __expf(m - m_new);
    float sum = p;
    for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(0xffffffff, sum, i);
    for (int d = lane; d < D; d += 32) o[d] *= rescale;
    for (int j = 0; j < 32; ++j) {
      const float p_j = __shfl_sync(0xffffffff, p, j);
      if (n0 + j >= keys) break;
      for (int d = lane; d < D; d += 32)
        o[d] += p_j * static_cast<float>(v[head + (size_t)(n0 + j) * H * D + d]);
    }
    l = l * rescale + sum;
    m = m_new;
  }
  for (int d = lane; d < D; d += 32)
    out[head + (size_t)row * H * D + d] = static_cast<scalar_t>(o[d] / l);
  if (lane == 0) lse[((size_t)b * H + h) * N + row] = m + logf(l);
}

std::vector<torch::Tensor> attention_forward(torch::Tensor q, torch::Tensor k, torch::Tensor v,
                                             bool is_causal, float* scores = nullptr) {
  TORCH_CHECK(q.is_cuda() && q.dim() == 4, "q must be a CUDA tensor of four axes");
  const int B = q.size(0), N = q.size(1), H = q.size(2), D = q.size(3);
  auto out = torch::empty_like(q);
  auto lse = torch::empty({B, H, N}, q.options().dtype(torch::kFloat32));
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(
      q.scalar_type(), "attention_forward", ([&] {
        attention_kernel<scalar_t><<<dim3(N, H, B), 32, D * sizeof(float)>>>(
            q.data_ptr<scalar_t>(), k.data_ptr<scalar_t>(), v.data_ptr<scalar_t>(),
            out.data_ptr<scalar_t>(), lse.data_ptr<float>(), scores, N, H, D, 1.0f / sqrtf(D),
            is_causal);
      }));
  return {out, lse};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", [](torch::Tensor q, torch::Tensor k, torch::Tensor v, bool is_causal) {
    return attention_forward(q, k, v, is_causal);
  });
}

#include <cuda_runtime.h>
#include <torch/extension.h>
#include <vector>

// FlashAttention-1 as in the paper's Algorithm 1: K/V blocks outside, Q blocks inside; O and the
// statistics (l, m) are read and written again for every pair of blocks.
#define CHECK_INPUT(x) \
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), #x " must be a contiguous CUDA tensor")

using acc4 = torch::PackedTensorAccessor32<float, 4, torch::RestrictPtrTraits>;
using acc3 = torch::PackedTensorAccessor32<float, 3, torch::RestrictPtrTraits>;

constexpr int BR = 16, BC = 16;

// blockDim = (BC, BR): thread (x, y) has score S[y][x]; then row y's threads share the columns of O.
__global__ void fa1_kernel(const acc4 Q, const acc4 K, const acc4 V, acc4 O, acc3 L, acc3 M,
                           float scale) {
  const int b = blockIdx.x, h = blockIdx.y;
  const int n = Q.size(2), d = Q.size(3);
  const int x = threadIdx.x, y = threadIdx.y;

  extern __shared__ float smem[];
  float *q_s = smem, *k_s = q_s + BR * d, *v_s = k_s + BC * d;
  __shared__ float p_s[BR][BC + 1];

  for (int j0 = 0; j0 < n; j0 += BC) {
    __syncthreads();
    for (int c = x; c < d; c += BC) {
      k_s[y * d + c] = j0 + y < n ? K[b][h][j0 + y][c] : 0.f;
      v_s[y * d + c] = j0 + y < n ? V[b][h][j0 + y][c] : 0.f;
    }
    for (int i0 = 0; i0 < n; i0 += BR) {
      const int i = i0 + y;
      for (int c = x; c < d; c += BC) q_s[y * d + c] = i < n ? Q[b][h][i][c] : 0.f;
      __syncthreads();

      float s = 0.f;
      for (int c = 0; c < d; ++c) s += q_s[y * d + c] * k_s[x * d + c];
      p_s[y][x] = j0 + x < n ? s * scale : -INFINITY;
      __syncthreads();

      // everybody of the row goes over its BC scores: cheap, and needs no shuffles
      float m_tilde = -INFINITY, l_tilde = 0.f;
      for (int t = 0; t < BC; ++t) m_tilde = fmaxf(m_tilde, p_s[y][t]);
      for (int t = 0; t < BC; ++t) l_tilde += expf(p_s[y][t] - m_tilde);

      if (i < n) {
        const float m_old = M[b][h][i], l_old = L[b][h][i];
        const float m_new = fmaxf(m_old, m_tilde);
        const float w_old = l_old * expf(m_old - m_new), w_new = expf(m_tilde - m_new);
        const float l_new = w_old + w_new * l_tilde;
        for (int c = x; c < d; c += BC) {
          float pv = 0.f;
          for (int t = 0; t < BC; ++t) pv += expf(p_s[y][t] - m_tilde) * v_s[t * d + c];
          O[b][h][i][c] = (w_old * O[b][h][i][c] + w_new * pv) / l_new;
        }
      }
      __syncthreads();
      if (i < n && x == 0) {
        const float m_old = M[b][h][i];
        const float m_new = fmaxf(m_old, m_tilde);
        L[b][h][i] = L[b][h][i] * expf(m_old - m_new) + expf(m_tilde - m_new) * l_tilde;
        M[b][h][i] = m_new;
      }
      __syncthreads();
    }
  }
}

std::vector<torch::Tensor> fa1_forward(torch::Tensor Q, torch::Tensor K, torch::Tensor V) {
  CHECK_INPUT(Q);
  CHECK_INPUT(K);
  CHECK_INPUT(V);
  const auto B = Q.size(0), H = Q.size(1), N = Q.size(2), D = Q.size(3);
  auto O = torch::zeros_like(Q);
  auto L = torch::zeros({B, H, N}, Q.options());
  auto M = torch::full({B, H, N}, -INFINITY, Q.options());
  const size_t smem = (BR + 2 * BC) * D * sizeof(float);
  fa1_kernel<<<dim3(B, H), dim3(BC, BR), smem>>>(
      Q.packed_accessor32<float, 4, torch::RestrictPtrTraits>(),
      K.packed_accessor32<float, 4, torch::RestrictPtrTraits>(),
      V.packed_accessor32<float, 4, torch::RestrictPtrTraits>(),
      O.packed_accessor32<float, 4, torch::RestrictPtrTraits>(),
      L.packed_accessor32<float, 3, torch::RestrictPtrTraits>(),
      M.packed_accessor32<float, 3, torch::RestrictPtrTraits>(),
      1.0f / sqrtf(static_cast<float>(D)));
  return {O, L, M};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &fa1_forward, "FlashAttention-1 forward, returns O, l and m");
}

#include <ATen/cuda/CUDAContext.h>
#include <cuda_fp16.h>
#include <torch/extension.h>
#include <tuple>

template <int BLOCK_M, int BLOCK_N, int HEAD_DIM>
__global__ void attn_fwd(const __half* Q, const __half* K, const __half* V, float sm_scale,
                         float* M, __half* Out, int stride_qz, int stride_qh, int stride_qm,
                         int stride_kz, int stride_kh, int stride_kn, int stride_vz, int stride_vh,
                         int stride_vn, int stride_oz, int stride_oh, int stride_om, int Z, int H,
                         int N_CTX) {
  const int start_m = blockIdx.x, off_hz = blockIdx.y;
  const int off_z = off_hz / H, off_h = off_hz % H;
  const int m = start_m * BLOCK_M + threadIdx.x;
  if (m >= N_CTX) return;
  const __half* q = Q + off_z * stride_qz + off_h * stride_qh + m * stride_qm;
  const __half* k = K + off_z * stride_kz + off_h * stride_kh;
  const __half* v = V + off_z * stride_vz + off_h * stride_vh;
  float acc[HEAD_DIM] = {}, m_i = -INFINITY, l_i = 0.f;
  for (int n = 0; n < N_CTX; ++n) {
    float qk = 0.f;
    for (int d = 0; d < HEAD_DIM; ++d)
      qk += __half2float(q[d]) * __half2float(k[n * stride_kn + d]);
    qk *= sm_scale * 1.44269504f;
    const float m_ij = fmaxf(m_i, qk), alpha = exp2f(m_i - m_ij), p = exp2f(qk - m_ij);
    l_i = l_i * alpha + p;
    for (int d = 0; d < HEAD_DIM; ++d)
      acc[d] = acc[d] * alpha + p * __half2float(v[n * stride_vn + d]);
    m_i = m_ij;
  }
  for (int d = 0; d < HEAD_DIM; ++d)
    Out[off_z * stride_oz + off_h * stride_oh + m * stride_om + d] = __float2half(acc[d] / l_i);
  M[off_hz * N_CTX + m] = m_i + log2f(l_i);
}

std::tuple<torch::Tensor, torch::Tensor> attention(torch::Tensor q, torch::Tensor k,
                                                   torch::Tensor v, float sm_scale) {
  const int Z = q.size(0), H = q.size(1), N_CTX = q.size(2);
  TORCH_CHECK(q.size(3) == 64, "head dim 64 only");
  auto o = torch::empty_like(q);
  auto M = torch::empty({Z, H, N_CTX}, q.options().dtype(torch::kFloat));
  const dim3 grid((N_CTX + 127) / 128, Z * H);
  attn_fwd<128, 32, 64><<<grid, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<__half*>(q.data_ptr<at::Half>()),
      reinterpret_cast<__half*>(k.data_ptr<at::Half>()),
      reinterpret_cast<__half*>(v.data_ptr<at::Half>()), sm_scale, M.data_ptr<float>(),
      reinterpret_cast<__half*>(o.data_ptr<at::Half>()), q.stride(0), q.stride(1), q.stride(2),
      k.stride(0), k.stride(1), k.stride(2), v.stride(0), v.stride(1), v.stride(2), o.stride(0),
      o.stride(1), o.stride(2), Z, H, N_CTX);
  return {o, M};
}

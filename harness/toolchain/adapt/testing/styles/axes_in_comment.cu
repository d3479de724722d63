#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace flash {

template <typename Element_, int kHeadDim_, int kBlockM_, int kBlockN_>
struct KernelTraits {
  using Element = Element_;
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kBlockM = kBlockM_;
  static constexpr int kBlockN = kBlockN_;
  static constexpr int kNThreads = kBlockM_;
};

// Tensors are laid out as [batch][seq][head][dim].
template <typename Traits>
__global__ void __launch_bounds__(Traits::kNThreads)
    flash_fwd_kernel(const typename Traits::Element* q, const typename Traits::Element* k,
                     const typename Traits::Element* v, typename Traits::Element* o, int seqlen,
                     int num_heads, float scale_log2) {
  using Element = typename Traits::Element;
  constexpr int D = Traits::kHeadDim;
  __shared__ Element ks[Traits::kBlockN][D], vs[Traits::kBlockN][D];
  const int head = blockIdx.y, batch = blockIdx.z;
  const int row = blockIdx.x * Traits::kBlockM + threadIdx.x;
  const int stride = num_heads * D;
  const size_t base = (size_t)batch * seqlen * stride + head * D;
  float acc[D], qr[D], m = -INFINITY, l = 0.f;
  for (int d = 0; d < D; ++d) {
    acc[d] = 0.f;
    qr[d] = row < seqlen ? float(q[base + (size_t)row * stride + d]) : 0.f;
  }
  for (int n0 = 0; n0 < seqlen; n0 += Traits::kBlockN) {
    __syncthreads();
    for (int i = threadIdx.x; i < Traits::kBlockN * D; i += Traits::kNThreads) {
      const int r = n0 + i / D;
      ks[i / D][i % D] = r < seqlen ? k[base + (size_t)r * stride + i % D] : Element(0.f);
      vs[i / D][i % D] = r < seqlen ? v[base + (size_t)r * stride + i % D] : Element(0.f);
    }
    __syncthreads();
    for (int j = 0; j < Traits::kBlockN && n0 + j < seqlen; ++j) {
      float s = 0.f;
      for (int d = 0; d < D; ++d) s += qr[d] * float(ks[j][d]);
      s *= scale_log2;
      const float mn = fmaxf(m, s), a = exp2f(m - mn), p = exp2f(s - mn);
      l = l * a + p;
      for (int d = 0; d < D; ++d) acc[d] = acc[d] * a + p * float(vs[j][d]);
      m = mn;
    }
  }
  if (row < seqlen)
    for (int d = 0; d < D; ++d) o[base + (size_t)row * stride + d] = Element(acc[d] / l);
}

template <typename Traits>
void run_flash_fwd(const typename Traits::Element* q, const typename Traits::Element* k,
                   const typename Traits::Element* v, typename Traits::Element* o, int batch,
                   int seqlen, int num_heads, float softmax_scale, cudaStream_t stream) {
  const dim3 grid((seqlen + Traits::kBlockM - 1) / Traits::kBlockM, num_heads, batch);
  flash_fwd_kernel<Traits><<<grid, Traits::kNThreads, 0, stream>>>(
      q, k, v, o, seqlen, num_heads, softmax_scale * 1.4426950408889634f);
}

void flash_fwd_hdim64(const half* q, const half* k, const half* v, half* o, int batch, int seqlen,
                      int num_heads, float softmax_scale, cudaStream_t stream) {
  run_flash_fwd<KernelTraits<half, 64, 64, 32>>(q, k, v, o, batch, seqlen, num_heads, softmax_scale,
                                                stream);
}

}  // namespace flash

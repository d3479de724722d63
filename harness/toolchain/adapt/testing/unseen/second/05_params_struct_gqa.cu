#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdexcept>

namespace fmha {

struct Fwd_params {
  using index_t = int64_t;
  void* __restrict__ q_ptr;
  void* __restrict__ k_ptr;
  void* __restrict__ v_ptr;
  void* __restrict__ o_ptr;
  float* __restrict__ softmax_lse_ptr;  // [b, h, seqlen_q]

  // Strides in elements; the last dimension is contiguous.
  index_t q_batch_stride, k_batch_stride, v_batch_stride, o_batch_stride;
  index_t q_row_stride, k_row_stride, v_row_stride, o_row_stride;
  index_t q_head_stride, k_head_stride, v_head_stride, o_head_stride;

  int b, h, h_k, h_h_k_ratio;
  int seqlen_q, seqlen_k, d;
  float scale_softmax;
  bool is_causal;
};

template <int kHeadDim_, int kBlockM_, int kBlockN_, int kNThreads_>
struct Kernel_traits {
  static constexpr int kHeadDim = kHeadDim_, kBlockM = kBlockM_, kBlockN = kBlockN_,
                       kNThreads = kNThreads_;
  static constexpr int kThreadsPerRow = kNThreads / kBlockM;
  static constexpr int kElts = kHeadDim / kThreadsPerRow;
  static constexpr int kSmemSize = 2 * kBlockN * kHeadDim * sizeof(__half);
  static_assert((kThreadsPerRow & (kThreadsPerRow - 1)) == 0 && kThreadsPerRow <= 32, "");
};

template <typename Kernel_traits, bool Is_causal>
__global__ void __launch_bounds__(Kernel_traits::kNThreads) fwd_kernel(const Fwd_params params) {
  constexpr int kBlockM = Kernel_traits::kBlockM, kBlockN = Kernel_traits::kBlockN;
  constexpr int kHeadDim = Kernel_traits::kHeadDim, kTPR = Kernel_traits::kThreadsPerRow;
  constexpr int kElts = Kernel_traits::kElts;

  const int m_block = blockIdx.x, bidb = blockIdx.y, bidh = blockIdx.z;
  const int tidx = threadIdx.x, r = tidx / kTPR, c = tidx % kTPR;
  const int row = m_block * kBlockM + r;

  extern __shared__ __half smem_[];
  __half *sK = smem_, *sV = smem_ + kBlockN * kHeadDim;

  const __half* gQ =
      (const __half*)params.q_ptr + bidb * params.q_batch_stride + bidh * params.q_head_stride;
  const int bidh_k = bidh / params.h_h_k_ratio;
  const __half* gK =
      (const __half*)params.k_ptr + bidb * params.k_batch_stride + bidh_k * params.k_head_stride;
  const __half* gV =
      (const __half*)params.v_ptr + bidb * params.v_batch_stride + bidh_k * params.v_head_stride;

  float rQ[kElts], acc_o[kElts];
#pragma unroll
  for (int i = 0; i < kElts; ++i) {
    acc_o[i] = 0.f;
    rQ[i] =
        row < params.seqlen_q ? __half2float(gQ[row * params.q_row_stride + i * kTPR + c]) : 0.f;
  }

  const int shift =
      params.seqlen_k - params.seqlen_q;  // causal: aligned to the bottom right corner
  int n_block_max = (params.seqlen_k + kBlockN - 1) / kBlockN;
  if (Is_causal)
    n_block_max = min(n_block_max, ((m_block + 1) * kBlockM + shift + kBlockN - 1) / kBlockN);

  float row_max = -INFINITY, row_sum = 0.f;
  // from the right, so that the blocks that need a mask come first
  for (int n_block = n_block_max - 1; n_block >= 0; --n_block) {
    __syncthreads();
    for (int e = tidx; e < kBlockN * kHeadDim; e += Kernel_traits::kNThreads) {
      const int n = n_block * kBlockN + e / kHeadDim, d = e % kHeadDim;
      const bool in = n < params.seqlen_k;
      sK[e] = in ? gK[n * params.k_row_stride + d] : __float2half(0.f);
      sV[e] = in ? gV[n * params.v_row_stride + d] : __float2half(0.f);
    }
    __syncthreads();

    float scores[kBlockN];
    float m_cur = row_max;
#pragma unroll
    for (int j = 0; j < kBlockN; ++j) {
      float s = 0.f;
#pragma unroll
      for (int i = 0; i < kElts; ++i) s += rQ[i] * __half2float(sK[j * kHeadDim + i * kTPR + c]);
#pragma unroll
      for (int off = kTPR / 2; off > 0; off /= 2) s += __shfl_xor_sync(0xffffffffu, s, off);
      const int col = n_block * kBlockN + j;
      const bool masked = col >= params.seqlen_k || (Is_causal && col > row + shift);
      scores[j] = masked ? -INFINITY : s * params.scale_softmax;
      m_cur = fmaxf(m_cur, scores[j]);
    }
    const float m_use = m_cur == -INFINITY ? 0.f : m_cur;
    const float alpha = __expf(row_max - m_use);
    row_sum *= alpha;
#pragma unroll
    for (int i = 0; i < kElts; ++i) acc_o[i] *= alpha;
#pragma unroll
    for (int j = 0; j < kBlockN; ++j) {
      const float p = __expf(scores[j] - m_use);
      row_sum += p;
#pragma unroll
      for (int i = 0; i < kElts; ++i) acc_o[i] += p * __half2float(sV[j * kHeadDim + i * kTPR + c]);
    }
    row_max = m_cur;
  }

  if (row >= params.seqlen_q) return;
  const float inv_sum = row_sum == 0.f ? 0.f : 1.f / row_sum;
  __half* gO = (__half*)params.o_ptr + bidb * params.o_batch_stride + bidh * params.o_head_stride;
#pragma unroll
  for (int i = 0; i < kElts; ++i)
    gO[row * params.o_row_stride + i * kTPR + c] = __float2half(acc_o[i] * inv_sum);
  if (c == 0)
    params.softmax_lse_ptr[((int64_t)bidb * params.h + bidh) * params.seqlen_q + row] =
        row_sum == 0.f ? -INFINITY : row_max + logf(row_sum);
}

template <typename Traits>
void launch(const Fwd_params& params, cudaStream_t stream) {
  dim3 grid((params.seqlen_q + Traits::kBlockM - 1) / Traits::kBlockM, params.b, params.h);
  auto kernel = params.is_causal ? &fwd_kernel<Traits, true> : &fwd_kernel<Traits, false>;
  kernel<<<grid, Traits::kNThreads, Traits::kSmemSize, stream>>>(params);
}

void run_fmha_fwd(Fwd_params& params, cudaStream_t stream) {
  params.h_h_k_ratio = params.h / params.h_k;
  switch (params.d) {
    case 32:
      launch<Kernel_traits<32, 32, 32, 128>>(params, stream);
      break;
    case 64:
      launch<Kernel_traits<64, 32, 32, 128>>(params, stream);
      break;
    case 128:
      launch<Kernel_traits<128, 16, 32, 128>>(params, stream);
      break;
    default:
      throw std::invalid_argument("fmha: head dim must be 32, 64 or 128");
  }
}

}  // namespace fmha

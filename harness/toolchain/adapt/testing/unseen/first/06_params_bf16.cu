#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>

////////////////////////////////////////////////////////////////////////////////////////////////////

struct Attn_fwd_params {
  using index_t = int64_t;

  // The QKV matrices.
  const void* __restrict__ q_ptr;
  const void* __restrict__ k_ptr;
  const void* __restrict__ v_ptr;

  // The strides between rows, heads and batches (in elements).
  index_t q_batch_stride, k_batch_stride, v_batch_stride;
  index_t q_row_stride, k_row_stride, v_row_stride;
  index_t q_head_stride, k_head_stride, v_head_stride;

  // The O matrix (output).
  void* __restrict__ o_ptr;
  index_t o_batch_stride, o_row_stride, o_head_stride;

  // The pointer to the softmax sum, (b, h, seqlen_q).
  float* __restrict__ softmax_lse_ptr;

  int b, h, h_k;
  int h_h_k_ratio;  // precomputed h / h_k
  int seqlen_q, seqlen_k, d;

  float scale_softmax;
  bool is_causal;
};

////////////////////////////////////////////////////////////////////////////////////////////////////

template <int kHeadDim, int kBlockM, int kBlockN, bool Is_causal>
__global__ void __launch_bounds__(kBlockM) attn_fwd_kernel(const Attn_fwd_params params) {
  using Element = __nv_bfloat16;
  __shared__ Element sK[kBlockN * kHeadDim];
  __shared__ Element sV[kBlockN * kHeadDim];

  const int m_block = blockIdx.x;
  const int bidb = blockIdx.y;
  const int bidh = blockIdx.z;
  const int row = m_block * kBlockM + threadIdx.x;

  const Element* gQ = reinterpret_cast<const Element*>(params.q_ptr) +
                      bidb * params.q_batch_stride + bidh * params.q_head_stride;
  const Element* gK = reinterpret_cast<const Element*>(params.k_ptr) +
                      bidb * params.k_batch_stride +
                      (bidh / params.h_h_k_ratio) * params.k_head_stride;
  const Element* gV = reinterpret_cast<const Element*>(params.v_ptr) +
                      bidb * params.v_batch_stride +
                      (bidh / params.h_h_k_ratio) * params.v_head_stride;

  float q[kHeadDim];
  float acc_o[kHeadDim];
#pragma unroll
  for (int k = 0; k < kHeadDim; ++k) {
    q[k] = row < params.seqlen_q ? __bfloat162float(gQ[row * params.q_row_stride + k]) : 0.f;
    acc_o[k] = 0.f;
  }
  float row_max = -INFINITY, row_sum = 0.f;

  // bottom-right aligned causal mask
  const int offset = params.seqlen_k - params.seqlen_q;
  int n_end = params.seqlen_k;
  if (Is_causal) {
    n_end = min(n_end, (m_block + 1) * kBlockM + offset);
  }

  for (int n0 = 0; n0 < n_end; n0 += kBlockN) {
    __syncthreads();
    for (int idx = threadIdx.x; idx < kBlockN * kHeadDim; idx += kBlockM) {
      const int n = n0 + idx / kHeadDim, k = idx % kHeadDim;
      sK[idx] = n < params.seqlen_k ? gK[n * params.k_row_stride + k] : __float2bfloat16(0.f);
      sV[idx] = n < params.seqlen_k ? gV[n * params.v_row_stride + k] : __float2bfloat16(0.f);
    }
    __syncthreads();

    int limit = min(kBlockN, params.seqlen_k - n0);
    if (Is_causal) {
      limit = min(limit, row + offset + 1 - n0);
    }
    for (int n = 0; n < limit; ++n) {
      float s = 0.f;
#pragma unroll
      for (int k = 0; k < kHeadDim; ++k) {
        s += q[k] * __bfloat162float(sK[n * kHeadDim + k]);
      }
      s *= params.scale_softmax;
      const float new_max = fmaxf(row_max, s);
      const float corr = __expf(row_max - new_max);
      const float p = __expf(s - new_max);
      row_sum = row_sum * corr + p;
#pragma unroll
      for (int k = 0; k < kHeadDim; ++k) {
        acc_o[k] = acc_o[k] * corr + p * __bfloat162float(sV[n * kHeadDim + k]);
      }
      row_max = new_max;
    }
  }

  if (row < params.seqlen_q) {
    Element* gO = reinterpret_cast<Element*>(params.o_ptr) + bidb * params.o_batch_stride +
                  bidh * params.o_head_stride + row * params.o_row_stride;
    const float inv_sum = row_sum == 0.f ? 0.f : 1.f / row_sum;
#pragma unroll
    for (int k = 0; k < kHeadDim; ++k) {
      gO[k] = __float2bfloat16(acc_o[k] * inv_sum);
    }
    params.softmax_lse_ptr[(bidb * params.h + bidh) * params.seqlen_q + row] =
        row_sum == 0.f ? -INFINITY : row_max + logf(row_sum);
  }
}

template <int kHeadDim>
void run_mha_fwd_hdim(Attn_fwd_params& params, cudaStream_t stream) {
  constexpr int kBlockM = 64, kBlockN = 32;
  const int num_m_block = (params.seqlen_q + kBlockM - 1) / kBlockM;
  dim3 grid(num_m_block, params.b, params.h);
  if (params.is_causal) {
    attn_fwd_kernel<kHeadDim, kBlockM, kBlockN, true><<<grid, kBlockM, 0, stream>>>(params);
  } else {
    attn_fwd_kernel<kHeadDim, kBlockM, kBlockN, false><<<grid, kBlockM, 0, stream>>>(params);
  }
}

void run_mha_fwd(Attn_fwd_params& params, cudaStream_t stream) {
  if (params.d == 64) {
    run_mha_fwd_hdim<64>(params, stream);
  } else if (params.d == 128) {
    run_mha_fwd_hdim<128>(params, stream);
  }
}

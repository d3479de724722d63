#include "row.cuh"

namespace fa {
template <typename T, int kHeadDim, bool kCausal>
__global__ void fwd(const T* __restrict__ q_ptr, const T* __restrict__ k_ptr,
                    const T* __restrict__ v_ptr, T* __restrict__ out_ptr, float* lse_ptr,
                    int nheads, int seqlen_q, int seqlen_k, float sm_scale) {
  const int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  if (threadIdx.x != 0 || row >= seqlen_q) return;
  const long bh = (long)batch * nheads + head;
  const int keys = kCausal ? min(row + 1 + seqlen_k - seqlen_q, seqlen_k) : seqlen_k;
  lse_ptr[bh * seqlen_q + row] =
      attend_row(q_ptr + (bh * seqlen_q + row) * kHeadDim, k_ptr + bh * seqlen_k * kHeadDim,
                 v_ptr + bh * seqlen_k * kHeadDim, out_ptr + (bh * seqlen_q + row) * kHeadDim, keys,
                 kHeadDim, kHeadDim, sm_scale);
}

template <typename T, int kHeadDim, bool kCausal>
void run_fwd(const T* q_ptr, const T* k_ptr, const T* v_ptr, T* out_ptr, float* lse_ptr, int bs,
             int nheads, int seqlen_q, int seqlen_k, float sm_scale, cudaStream_t stream) {
  fwd<T, kHeadDim, kCausal><<<dim3(seqlen_q, nheads, bs), 32, 0, stream>>>(
      q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, nheads, seqlen_q, seqlen_k, sm_scale);
}

template void run_fwd<half, 32, true>(const half*, const half*, const half*, half*, float*, int,
                                      int, int, int, float, cudaStream_t);
template void run_fwd<half, 32, false>(const half*, const half*, const half*, half*, float*, int,
                                       int, int, int, float, cudaStream_t);
template void run_fwd<half, 64, false>(const half*, const half*, const half*, half*, float*, int,
                                       int, int, int, float, cudaStream_t);
}  // namespace fa

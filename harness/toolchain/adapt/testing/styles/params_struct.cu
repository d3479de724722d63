#include "row.cuh"

struct QkvParams {
  void* q_ptr;
  void* k_ptr;
  void* v_ptr;
  long q_batch_stride, k_batch_stride, v_batch_stride;
  long q_row_stride, k_row_stride, v_row_stride;
  long q_head_stride, k_head_stride, v_head_stride;
  int h, h_k;
};

struct FlashParams : public QkvParams {
  void* o_ptr;
  long o_batch_stride, o_row_stride, o_head_stride;
  float* softmax_lse_ptr;
  int b, seqlen_q, seqlen_k, d;
  float scale_softmax;
  bool is_causal;
};

__global__ void params_kernel(const FlashParams p) {
  const int row = blockIdx.x, h = blockIdx.y, b = blockIdx.z, hk = h / (p.h / p.h_k);
  if (threadIdx.x != 0) return;
  const half* q =
      (const half*)p.q_ptr + b * p.q_batch_stride + h * p.q_head_stride + row * p.q_row_stride;
  const half* k = (const half*)p.k_ptr + b * p.k_batch_stride + hk * p.k_head_stride;
  const half* v = (const half*)p.v_ptr + b * p.v_batch_stride + hk * p.v_head_stride;
  half* o = (half*)p.o_ptr + b * p.o_batch_stride + h * p.o_head_stride + row * p.o_row_stride;
  p.softmax_lse_ptr[((long)b * p.h + h) * p.seqlen_q + row] = attend_row(
      q, k, v, o, p.is_causal ? row + 1 : p.seqlen_k, p.d, p.k_row_stride, p.scale_softmax);
}

void run_mha_fwd(FlashParams& params, cudaStream_t stream) {
  params_kernel<<<dim3(params.seqlen_q, params.h, params.b), 32, 0, stream>>>(params);
}

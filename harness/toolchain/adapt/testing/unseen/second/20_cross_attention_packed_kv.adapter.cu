#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "20_cross_attention_packed_kv.cu"

static void call(const attn_diag::Call& c) {
  const size_t rows = size_t(c.batch()) * c.seqlen_k(), width = size_t(c.heads()) * c.head_dim();
  attn_diag::DeviceBuffer<half> kv(rows * 2 * width);
  const size_t bytes = width * sizeof(half);
  attn_diag::check_cuda(
      cudaMemcpy2D(kv.data(), 2 * bytes, c.k<half>(), bytes, bytes, rows, cudaMemcpyDeviceToDevice),
      "pack");
  attn_diag::check_cuda(cudaMemcpy2D(kv.data() + width, 2 * bytes, c.v<half>(), bytes, bytes, rows,
                                     cudaMemcpyDeviceToDevice),
                        "pack");
  crossAttention(c.q<half>(), kv.data(), c.o<half>(), c.batch(), c.seqlen_q(), c.seqlen_k(),
                 c.heads(), c.stream());
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "cross",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {64},
                  .layouts = bshd,
                  .other_seqlen_k = true,
                  .max_seqlen_k = 2500,
                  .any_scale = false,
                  .lse = Lse::kNone});

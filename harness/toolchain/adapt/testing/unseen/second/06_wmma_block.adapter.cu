#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "06_wmma_block.cu"

static void call(const attn_diag::Call& c) {
  attn_diag::check_cuda(
      launch_attention_wmma(c.o<half>(), c.q<half>(), c.k<half>(), c.v<half>(),
                            c.batch() * c.heads(), c.seqlen(), c.scale(), c.stream()),
      "launch");
}
ATTN_DIAG_EXPORT({.name = "wmma_block",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {HEAD_DIM},
                  .tile = {64, 32},
                  .tensor_cores = true,
                  .p_in_input_type = true,
                  .lse = Lse::kNone});

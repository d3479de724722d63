#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "07_mma_sync_ptx.cu"

static void call(const attn_diag::Call& c) {
  attn_diag::check_cuda(
      flash_attn_bf16(c.q(), c.k(), c.v(), c.o(), c.lse(), c.batch(), c.heads(), c.seqlen(),
                      c.head_dim(), c.scale(), c.is_causal(), c.stream()),
      "launch");
}
ATTN_DIAG_EXPORT({.name = "fa_mma",
                  .call = call,
                  .dtypes = bf16,
                  .head_dims = {64, 128},
                  .masks = none | causal,
                  .tile = {64, 64},
                  .tensor_cores = true,
                  .p_in_input_type = true,
                  .exp2 = true});

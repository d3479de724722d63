#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "05_gqa_half_dispatch.cu"
static void call(const attn_diag::Call& c) {
  if (c.dtype() == attn_diag::DType::kFp16)
    infer::launch_gqa_prefill<half>(c.o<half>(), c.q<half>(), c.k<half>(), c.v<half>(), c.batch(),
                                    c.seqlen(), c.heads(), c.kv_heads(), c.head_dim(), c.scale(),
                                    c.is_causal(), c.stream());
  else
    infer::launch_gqa_prefill<float>(c.o<float>(), c.q<float>(), c.k<float>(), c.v<float>(),
                                     c.batch(), c.seqlen(), c.heads(), c.kv_heads(), c.head_dim(),
                                     c.scale(), c.is_causal(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp16 | fp32,
                  .head_dims = {32, 64, 128},
                  .masks = none | causal,
                  .layouts = bshd,
                  .grouped_heads = true,
                  .tile = {4, 1},
                  .lse = Lse::kNone});

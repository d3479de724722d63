#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/coded_inputs.h>

#include "13_fp8_kv_append.cu"

static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() > c.seqlen_k()) c.refuse("seqlen_q <= seqlen_k");
  attn_diag::CodedInput k = attn_diag::coded_k(c), v = attn_diag::coded_v(c);
  AppendAttentionFp8KV(c.o<__nv_bfloat16>(), c.lse(), c.q<__nv_bfloat16>(), k.codes<fp8>(),
                       v.codes<fp8>(), k.scale(), v.scale(), c.scale(), c.batch(), c.heads(),
                       c.seqlen_q(), c.seqlen_k(), c.head_dim(), c.stream());
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "append_fp8",
                  .call = call,
                  .dtypes = bf16,
                  .head_dims = {HEAD},
                  .masks = causal | causal_bottom_right,
                  .other_seqlen_k = true,
                  .k_codes = {CodeType::kE4m3, ScalePer::kTensor},
                  .v_codes = {CodeType::kE4m3, ScalePer::kTensor},
                  .tile = {QT, KT},
                  .exp2 = true,
                  .lse = Lse::kBase2});

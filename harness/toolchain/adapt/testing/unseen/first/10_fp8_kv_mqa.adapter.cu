#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/coded_inputs.h>
#include <attn_diag/kernels/device_buffer.h>
#include "10_fp8_kv_mqa.cu"
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  attn_diag::CodedInput k = attn_diag::coded_k(c), v = attn_diag::coded_v(c);
  if (!fp8_decode_attention(c.q<__nv_bfloat16>(), k.codes<__nv_fp8_e4m3>(),
                            v.codes<__nv_fp8_e4m3>(), c.o<__nv_bfloat16>(), c.batch(), c.heads(),
                            c.kv_heads(), c.seqlen_k(), c.head_dim(), k.scale(), v.scale(),
                            c.stream()))
    c.refuse("no kernel for it");
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = bf16,
                  .head_dims = {64, 128},
                  .layouts = bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .any_scale = false,
                  .k_codes = {CodeType::kE4m3, ScalePer::kTensor},
                  .v_codes = {CodeType::kE4m3, ScalePer::kTensor},
                  .lse = Lse::kNone});

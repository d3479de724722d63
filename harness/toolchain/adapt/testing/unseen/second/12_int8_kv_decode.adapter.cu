#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/coded_inputs.h>

#include "12_int8_kv_decode.cu"

static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  attn_diag::CodedInput k = attn_diag::coded_k(c), v = attn_diag::coded_v(c);
  const kvq::CacheView kc{k.codes<int8_t>(), k.scales(), c.seqlen_k()},
      vc{v.codes<int8_t>(), v.scales(), c.seqlen_k()};
  if (!kvq::decode_attention_i8(c.o<half>(), c.q<half>(), kc, vc, c.batch(), c.seqlen_k(),
                                c.heads(), c.kv_heads(), c.head_dim(), c.scale(), c.stream()))
    c.refuse("head dim");
  cudaDeviceSynchronize();
}
// A warp takes every fourth token: no split of neighbouring tiles, so not declared as num_splits.
ATTN_DIAG_EXPORT({.name = "decode_i8",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {64, 128},
                  .layouts = bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .k_codes = {CodeType::kInt8, ScalePer::kToken},
                  .v_codes = {CodeType::kInt8, ScalePer::kToken},
                  .tile = {1, 1},
                  .lse = Lse::kNone});

#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/torch_tensors.h>

#include "17_torch_strided_sdpa.cu"

static void call(const attn_diag::Call& c) {
  const bool bshd = c.layout() == attn_diag::Layout::kBSHD;
  const auto view = [&](torch::Tensor t) { return bshd ? t.transpose(1, 2) : t; };
  const auto [o, lse] = sdpa_forward(view(attn_diag::torch_q(c)), view(attn_diag::torch_k(c)),
                                     view(attn_diag::torch_v(c)), c.is_causal(), c.scale());
  attn_diag::store_o(c, view(o));
  attn_diag::store_lse(c, lse);
}
ATTN_DIAG_EXPORT({.name = "tiny_sdpa",
                  .call = call,
                  .dtypes = fp16 | bf16 | fp32,
                  .other_head_dim_v = true,
                  .masks = none | causal | causal_top_left,
                  .layouts = bhsd | bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .tile = {4, 32}});

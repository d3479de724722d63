#include <attn_diag/kernels/bring.h>

#include "05_params_struct_gqa.cu"

static void call(const attn_diag::Call& c) {
  fmha::Fwd_params p{};
  p.q_ptr = c.q<half>();
  p.k_ptr = c.k<half>();
  p.v_ptr = c.v<half>();
  p.o_ptr = c.o<half>();
  p.softmax_lse_ptr = c.lse();
  const auto q = c.q_strides(), k = c.k_strides(), v = c.v_strides(), o = c.o_strides();
  p.q_batch_stride = q.batch, p.k_batch_stride = k.batch, p.v_batch_stride = v.batch,
  p.o_batch_stride = o.batch;
  p.q_row_stride = q.seq, p.k_row_stride = k.seq, p.v_row_stride = v.seq, p.o_row_stride = o.seq;
  p.q_head_stride = q.head, p.k_head_stride = k.head, p.v_head_stride = v.head,
  p.o_head_stride = o.head;
  p.b = c.batch(), p.h = c.heads(), p.h_k = c.kv_heads();
  p.seqlen_q = c.seqlen_q(), p.seqlen_k = c.seqlen_k(), p.d = c.head_dim();
  p.scale_softmax = c.scale();
  p.is_causal = c.is_causal();
  fmha::run_fmha_fwd(p, c.stream());
}
ATTN_DIAG_EXPORT({.name = "fmha",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {32, 64, 128},
                  .masks = none | causal | causal_bottom_right,
                  .layouts = bhsd | bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .tile = {32, 32}});

#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "19_triton_like_lse2.cu"
static void call(const attn_diag::Call& c) {
  const auto s = [](attn_diag::Strides x, int* to) {
    to[0] = int(x.batch);
    to[1] = int(x.head);
    to[2] = int(x.seq);
  };
  int q[3], k[3], v[3], o[3];
  s(c.q_strides(), q);
  s(c.k_strides(), k);
  s(c.v_strides(), v);
  s(c.o_strides(), o);
  attn_fwd<64>(c.q<half>(), c.k<half>(), c.v<half>(), c.o<half>(), c.lse(), c.batch(), c.heads(),
               c.seqlen(), c.scale(), c.is_causal(), q, k, v, o, c.stream());
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {64},
                  .masks = none | causal,
                  .layouts = bhsd | bshd,
                  .tile = {32, 32},
                  .exp2 = true,
                  .lse = Lse::kBase2});

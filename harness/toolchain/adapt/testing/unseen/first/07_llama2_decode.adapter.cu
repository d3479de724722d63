#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "07_llama2_decode.cu"
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  const int kv_dim = c.kv_heads() * c.head_dim(), n = c.seqlen_k();
  attn_diag::DeviceBuffer<float> att(c.heads() * n);
  for (int b = 0; b < c.batch(); ++b) {
    Config p = {};
    p.n_heads = c.heads();
    p.n_kv_heads = c.kv_heads();
    p.seq_len = n;
    RunState s = {c.q<float>() + b * c.heads() * c.head_dim(), att.data(),
                  c.o<float>() + b * c.heads() * c.head_dim(), c.k<float>(), c.v<float>()};
    multi_head_attention(n - 1, &p, &s, kv_dim, c.heads() / c.kv_heads(), c.head_dim(),
                         b * n * kv_dim);
  }
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp32,
                  .layouts = bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .any_scale = false,
                  .lse = Lse::kNone});

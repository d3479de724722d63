#include <attn_diag/kernels/bring.h>

#include "11_sliding_window_two_pass.cu"

using bf = __nv_bfloat16;
static void call(const attn_diag::Call& c) {
  if (c.window_right() != 0) c.refuse("it sees nothing to the right");
  if (c.head_dim() % 2) c.refuse("even head dims");
  const int window = c.is_causal() ? c.seqlen() : c.window_left() + 1;
  swa_prefill(c.o<bf>(), c.q<bf>(), c.k<bf>(), c.v<bf>(), c.batch(), c.seqlen(), c.heads(),
              c.kv_heads(), c.head_dim(), window, c.scale());
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "swa",
                  .call = call,
                  .dtypes = bf16,
                  .masks = causal | window,
                  .layouts = bshd,
                  .grouped_heads = true,
                  .max_seqlen_k = 4096,
                  .lse = Lse::kNone});

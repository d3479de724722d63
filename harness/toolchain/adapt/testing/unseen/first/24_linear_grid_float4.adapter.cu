#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "24_linear_grid_float4.cu"
static void call(const attn_diag::Call& c) {
  attn_diag::check_cuda(
      attn::forward_f32(c.o<float>(), c.q<float>(), c.k<float>(), c.v<float>(), nullptr, c.batch(),
                        c.seqlen_q(), c.seqlen_k(), c.heads(), c.kv_heads(), c.head_dim(),
                        c.problem().mask.kind == attn_diag::MaskKind::kCausal, c.scale(),
                        c.stream()),
      "launch");
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp32,
                  .head_dims = {32, 64, 128},
                  .masks = none | causal | causal_bottom_right,
                  .layouts = bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .tile = {8, 32},
                  .lse = Lse::kNone});

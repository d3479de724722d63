#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "18_mqa_coop_groups.cu"

static void call(const attn_diag::Call& c) {
  if (c.kv_heads() != 1) c.refuse("one KV head");
  const mqa::Config cfg{c.batch(), c.seqlen(), c.heads(),
                        c.is_causal() ? mqa::Mask::LowerTriangular : mqa::Mask::Full};
  const auto forward = c.head_dim() == 64 ? mqa::forward<64> : mqa::forward<128>;
  attn_diag::check_cuda(
      forward(cfg, c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.stream()), "launch");
}
ATTN_DIAG_EXPORT({.name = "mqa",
                  .call = call,
                  .dtypes = fp32,
                  .head_dims = {64, 128},
                  .masks = none | causal,
                  .layouts = bshd,
                  .grouped_heads = true,
                  .any_scale = false,
                  .tile = {1, 1},
                  .lse = Lse::kNone});

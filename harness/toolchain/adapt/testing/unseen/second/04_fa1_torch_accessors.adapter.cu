#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/torch_tensors.h>

#include "04_fa1_torch_accessors.cu"

static void call(const attn_diag::Call& c) {
  const auto result =
      fa1_forward(attn_diag::torch_q(c), attn_diag::torch_k(c), attn_diag::torch_v(c));
  attn_diag::store_o(c, result[0]);  // l and m come apart, not as an lse
}
ATTN_DIAG_EXPORT({.name = "fa1",
                  .call = call,
                  .dtypes = fp32,
                  .max_head_dim = 128,
                  .any_scale = false,
                  .tile = {16, 16},
                  .lse = Lse::kNone});

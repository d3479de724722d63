#include <attn_diag/kernels/bring.h>

#include "15_pv_only_wmma.cu"

static void call(const attn_diag::Call& c) {
  context_layer_forward(c.o<half>(), c.probs<half>(), c.v<half>(), c.batch(), c.heads(),
                        c.seqlen_q(), c.seqlen_k(), c.head_dim_v(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "context_layer",
                  .call = call,
                  .part = Part::kFromProbs,
                  .dtypes = fp16,
                  .head_dims = {32, 64},
                  .masks = none | causal,
                  .layouts = bshd,
                  .other_seqlen_k = true,
                  .seqlen_q_multiple_of = 16,
                  .seqlen_k_multiple_of = 16,
                  .tensor_cores = true,
                  .p_in_input_type = true,
                  .lse = Lse::kNone});

#include <attn_diag/kernels/bring.h>

#include "19_switch_dispatch_folded_scale.cu"

static void call(const attn_diag::Call& c) {
  mha_fwd(c.o(), c.lse(), c.q(), c.k(), c.v(), c.batch(), c.heads(), c.seqlen_q(), c.seqlen_k(),
          c.head_dim(), c.scale(), c.dtype() == attn_diag::DType::kFp16, c.is_causal(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "mha_fwd",
                  .call = call,
                  .dtypes = fp16 | bf16,
                  .max_head_dim = 128,
                  .masks = none | causal | causal_top_left,
                  .other_seqlen_k = true,
                  .tile = {64, 16},
                  .q_prescaled = true});

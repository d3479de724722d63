#include <attn_diag/kernels/bring.h>

#include "14_qk_scores_sgemm.cu"

static void call(const attn_diag::Call& c) {
  attention_scores(c.q<float>(), c.k<float>(), c.scores<float>(), c.batch(), c.heads(),
                   c.seqlen_q(), c.seqlen_k(), c.head_dim(), c.scale(), c.is_causal(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "qk_scores",
                  .call = call,
                  .part = Part::kScores,
                  .dtypes = fp32,
                  .masks = none | causal | causal_top_left,
                  .other_seqlen_k = true,
                  .tile = {64, 64}});

#include <attn_diag/kernels/bring.h>

#include "02_contest_solve.cu"

static void call(const attn_diag::Call& c) {
  const size_t sq = size_t(c.seqlen_q()) * c.head_dim(), sk = size_t(c.seqlen_k()) * c.head_dim();
  for (int i = 0; i < c.batch() * c.heads(); ++i)
    solve(c.q<float>() + i * sq, c.k<float>() + i * sk, c.v<float>() + i * sk,
          c.o<float>() + i * sq, c.seqlen_q(), c.seqlen_k(), c.head_dim());
}
ATTN_DIAG_EXPORT({.name = "solve",
                  .call = call,
                  .dtypes = fp32,
                  .max_head_dim = 128,
                  .other_seqlen_k = true,
                  .any_scale = false,
                  .tile = {8, 1},
                  .lse = Lse::kNone});

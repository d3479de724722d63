#include <attn_diag/kernels/bring.h>

#include "21_bench_register_rows.cu"
constexpr int kHeadDim = D, kRows = TPB, kKeys = BK;
#undef D
#undef N

static void call(const attn_diag::Call& c) {
  run_regs(c.o<float>(), c.lse(), c.q<float>(), c.k<float>(), c.v<float>(), c.batch() * c.heads(),
           c.seqlen(), c.is_causal());
}
ATTN_DIAG_EXPORT({.name = "attn_regs",
                  .call = call,
                  .dtypes = fp32,
                  .head_dims = {kHeadDim},
                  .masks = none | causal,
                  .any_scale = false,
                  .tile = {kRows, kKeys}});

#include <attn_diag/kernels/bring.h>

#include "flash.h"

static void call(const attn_diag::Call& c) {
  flash_fwd(c.q<half>(), c.k<half>(), c.v<half>(), c.o<half>(), c.lse(), c.batch(), c.heads(),
            c.seqlen(), c.head_dim(), c.scale(), c.is_causal(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "flash",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {32, 64},
                  .masks = none | causal,
                  .tile = {32, 32}});

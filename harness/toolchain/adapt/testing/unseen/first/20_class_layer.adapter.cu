#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "20_class_layer.cu"
static void call(const attn_diag::Call& c) {
  AttentionLayer layer(c.batch(), c.heads(), c.seqlen(), c.head_dim(), c.is_causal());
  layer.forward(c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.seqlen(), c.stream());
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp32,
                  .masks = none | causal,
                  .any_scale = false,
                  .lse = Lse::kNone});

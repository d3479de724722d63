#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/packed_tensors.h>

#include "03_packed_qkv_lm_trainer.cu"

static void call(const attn_diag::Call& c) {
  attn_diag::PackedQkv<float> qkv(c);
  attn_diag::DeviceBuffer<float> probs(size_t(c.batch()) * c.heads() * c.seqlen() * c.seqlen());
  attention_layer_forward(c.o<float>(), probs.data(), qkv.data(), c.batch(), c.seqlen(),
                          c.heads() * c.head_dim(), c.heads());
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "lm_trainer",
                  .call = call,
                  .dtypes = fp32,
                  .masks = causal,
                  .layouts = bshd,
                  .any_scale = false,
                  .lse = Lse::kNone});

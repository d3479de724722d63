#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/torch_tensors.h>

std::vector<torch::Tensor> attention_forward(torch::Tensor q, torch::Tensor k, torch::Tensor v,
                                             bool is_causal, float* scores);

static void call(const attn_diag::Call& c) {
  const auto result =
      attention_forward(attn_diag::torch_q(c), attn_diag::torch_k(c), attn_diag::torch_v(c),
                        c.is_causal(), c.stage(attn_diag::Tensor::kS));
  attn_diag::store_o(c, result[0]);
  attn_diag::store_lse(c, result[1]);
}
ATTN_DIAG_EXPORT({.name = "attention_forward",
                  .call = call,
                  .dtypes = fp16 | fp32,
                  .max_head_dim = 256,
                  .masks = none | causal,
                  .layouts = bshd,
                  .any_scale = false,
                  .tile = {1, 32},
                  .skips_masked_tiles = false,
                  .stages = {Tensor::kS}});

#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "10_varlen_cu_seqlens.cu"

static void call(const attn_diag::Call& c) {
  const int B = c.batch(), H = c.heads(), S = c.seqlen_q();
  std::vector<int> q(B + 1), k(B + 1);
  for (int b = 0; b <= B; ++b) q[b] = b * S, k[b] = b * c.seqlen_k();
  attn_diag::DeviceBuffer<int> cu_q(B + 1), cu_k(B + 1);
  attn_diag::DeviceBuffer<float> lse(size_t(H) * B * S);
  cudaMemcpy(cu_q.data(), q.data(), q.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(cu_k.data(), k.data(), k.size() * sizeof(int), cudaMemcpyHostToDevice);
  if (varlen_fwd(c.o<half>(), lse.data(), c.q<half>(), c.k<half>(), c.v<half>(), cu_q.data(),
                 cu_k.data(), B, S, H, c.kv_heads(), c.head_dim(), c.scale(),
                 c.is_causal() ? MaskType::kCausal : MaskType::kNone, c.stream()) != 0)
    c.refuse("head dim");
  cudaDeviceSynchronize();
  // [H][B * S] -> [B][H][S]
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < H; ++h)
      cudaMemcpy(c.lse() + (size_t(b) * H + h) * S, lse.data() + (size_t(h) * B + b) * S,
                 S * sizeof(float), cudaMemcpyDeviceToDevice);
}
ATTN_DIAG_EXPORT({.name = "varlen",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {64, 96, 128},
                  .masks = none | causal | causal_bottom_right,
                  .layouts = bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .tile = {16, 32}});

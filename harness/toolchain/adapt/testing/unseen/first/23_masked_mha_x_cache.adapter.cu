#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "23_masked_mha_x_cache.cu"
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  const int B = c.batch(), H = c.heads(), n = c.seqlen_k(), D = c.head_dim();
  std::vector<half> k(std::size_t(B) * H * n * D), kc(k.size());
  cudaMemcpy(k.data(), c.k<half>(), k.size() * 2, cudaMemcpyDeviceToHost);
  for (int bh = 0; bh < B * H; ++bh)
    for (int t = 0; t < n; ++t)
      for (int d = 0; d < D; ++d)
        kc[((std::size_t(bh) * (D / 8) + d / 8) * n + t) * 8 + d % 8] =
            k[(std::size_t(bh) * n + t) * D + d];
  attn_diag::DeviceBuffer<half> dk(kc.size());
  cudaMemcpy(dk.data(), kc.data(), kc.size() * 2, cudaMemcpyHostToDevice);
  attn_diag::DeviceBuffer<int> lens(B);
  lens.fill(n);
  Masked_mha_params p = {c.o<half>(), c.q<half>(), dk.data(), c.v<half>(), lens.data(),
                         B,           H,           D,         n,           c.scale()};
  masked_multihead_attention(p, c.stream());
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {32, 64, 128},
                  .other_seqlen_k = true,
                  .lse = Lse::kNone});

#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "14_paged_decode.cu"
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  const int n = c.seqlen_k(), per = (n + 15) / 16, row = c.kv_heads() * c.head_dim(),
            blocks = per * c.batch();
  std::vector<int> table(blocks), lens(c.batch(), n);
  std::vector<half> k(c.batch() * n * row), v(k.size()), kc(std::size_t(blocks) * 16 * row),
      vc(kc.size());
  cudaMemcpy(k.data(), c.k<half>(), k.size() * 2, cudaMemcpyDeviceToHost);
  cudaMemcpy(v.data(), c.v<half>(), v.size() * 2, cudaMemcpyDeviceToHost);
  for (int b = 0; b < c.batch(); ++b)
    for (int i = 0; i < per; ++i) table[b * per + i] = blocks - 1 - (b * per + i);
  for (int b = 0; b < c.batch(); ++b)
    for (int t = 0; t < n; ++t)
      for (int e = 0; e < row; ++e) {
        const std::size_t to = (std::size_t(table[b * per + t / 16]) * 16 + t % 16) * row + e,
                          from = (std::size_t(b) * n + t) * row + e;
        kc[to] = k[from];
        vc[to] = v[from];
      }
  attn_diag::DeviceBuffer<half> dk(kc.size()), dv(vc.size());
  attn_diag::DeviceBuffer<int> dt(table.size()), dl(lens.size());
  cudaMemcpy(dk.data(), kc.data(), kc.size() * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(dv.data(), vc.data(), vc.size() * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(dt.data(), table.data(), table.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dl.data(), lens.data(), lens.size() * 4, cudaMemcpyHostToDevice);
  paged_attention(c.o<half>(), c.q<half>(), dk.data(), dv.data(), dt.data(), dl.data(), c.batch(),
                  c.heads(), c.kv_heads(), c.head_dim(), c.scale(), per, n, c.stream());
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {64, 96, 128},
                  .layouts = bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .lse = Lse::kNone});

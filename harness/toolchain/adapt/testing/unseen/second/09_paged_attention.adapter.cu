#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/host_tensors.h>

#include "09_paged_attention.cu"

constexpr int kBlock = 16;

template <class T>
static void to_device(const attn_diag::DeviceBuffer<T>& d, const std::vector<T>& h) {
  attn_diag::check_cuda(
      cudaMemcpy(d.data(), h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
}

template <class T>
static void paged(const attn_diag::Call& c) {
  const int B = c.batch(), Hk = c.kv_heads(), S = c.seqlen_k(), D = c.head_dim();
  const int x = 16 / sizeof(T), per_seq = (S + kBlock - 1) / kBlock, blocks = B * per_seq;
  attn_diag::HostTensors h(c);
  std::vector<T> k(size_t(blocks) * Hk * D * kBlock, T(0.f)), v(k);
  std::vector<int> table(blocks);
  for (int i = 0; i < blocks; ++i) table[i] = blocks - 1 - i;  // not in order, on purpose
  const auto st = c.k_strides();
  for (int b = 0; b < B; ++b)
    for (int s = 0; s < S; ++s)
      for (int n = 0; n < Hk; ++n)
        for (int d = 0; d < D; ++d) {
          const size_t from = b * st.batch + n * st.head + s * st.seq + d;
          const size_t head = (size_t(table[b * per_seq + s / kBlock]) * Hk + n) * D * kBlock;
          k[head + (d / x * kBlock + s % kBlock) * x + d % x] = h.k<T>()[from];
          v[head + d * kBlock + s % kBlock] = h.v<T>()[from];
        }
  attn_diag::DeviceBuffer<T> kc(k.size()), vc(v.size());
  attn_diag::DeviceBuffer<int> tables(blocks), lens(B);
  to_device(kc, k);
  to_device(vc, v);
  to_device(tables, table);
  lens.fill(S);
  paged_attention<T>(c.o<T>(), c.q<T>(), kc.data(), vc.data(), B, c.heads(), Hk, D, c.scale(),
                     tables.data(), lens.data(), per_seq, S, c.stream());
  cudaDeviceSynchronize();
}
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  c.dtype() == attn_diag::DType::kFp16 ? paged<__half>(c) : paged<__nv_bfloat16>(c);
}
ATTN_DIAG_EXPORT({.name = "paged",
                  .call = call,
                  .dtypes = fp16 | bf16,
                  .head_dims = {64, 80, 128},
                  .layouts = bhsd | bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .lse = Lse::kNone});

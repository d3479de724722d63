#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "16_masked_mha_step.cu"

template <class T>
static void step(const attn_diag::Call& c) {
  const int B = c.batch(), H = c.heads(), Hk = c.kv_heads(), S = c.seqlen_k(), D = c.head_dim(),
            max_len = S + 5;
  const size_t line = D * sizeof(T), width = size_t(H + 2 * Hk) * D;
  attn_diag::DeviceBuffer<T> qkv(B * width), kc(size_t(B) * Hk * max_len * D), vc(kc.size());
  kc.fill(T(0.f)), vc.fill(T(0.f));
  const auto copy = [](void* to, const void* from, size_t bytes) {
    attn_diag::check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice), "copy");
  };
  for (int b = 0; b < B; ++b) {
    copy(qkv.data() + b * width, c.q<T>() + size_t(b) * H * D, H * line);
    for (int h = 0; h < Hk; ++h) {
      const size_t from = (size_t(b) * Hk + h) * S * D, to = (size_t(b) * Hk + h) * max_len * D;
      if (S > 1)
        copy(kc.data() + to, c.k<T>() + from, (S - 1) * line),
            copy(vc.data() + to, c.v<T>() + from, (S - 1) * line);
      const size_t last = from + size_t(S - 1) * D;
      copy(qkv.data() + b * width + size_t(H + h) * D, c.k<T>() + last, line);
      copy(qkv.data() + b * width + size_t(H + Hk + h) * D, c.v<T>() + last, line);
    }
  }
  Masked_mha_params<T> p{qkv.data(), kc.data(), vc.data(), c.o<T>(), B,        H,
                         Hk,         D,         max_len,   S - 1,    c.scale()};
  invokeMaskedMultiheadAttention<T>(p, c.stream());
  cudaDeviceSynchronize();
}
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  if (c.head_dim() % 32 || c.head_dim() > 1024) c.refuse("head_dim is a multiple of 32");
  c.dtype() == attn_diag::DType::kFp32 ? step<float>(c) : step<__half>(c);
}
ATTN_DIAG_EXPORT({.name = "masked_mha",
                  .call = call,
                  .dtypes = fp16 | fp32,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .lse = Lse::kNone});

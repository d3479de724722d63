#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/host_tensors.h>
#include <cuda_fp16.h>

#include "22_kernel_only_kt_layout.cu"

template <class T>
static void launch(const attn_diag::Call& c) {
  const int BH = c.batch() * c.heads(), Sk = c.seqlen_k(), d = c.head_dim(),
            ldk = (Sk + 31) / 32 * 32;
  attn_diag::HostTensors h(c);
  std::vector<T> kt(size_t(BH) * d * ldk, T(0.f));
  for (int i = 0; i < BH; ++i)
    for (int s = 0; s < Sk; ++s)
      for (int x = 0; x < d; ++x)
        kt[(size_t(i) * d + x) * ldk + s] = h.k<T>()[(size_t(i) * Sk + s) * d + x];
  attn_diag::DeviceBuffer<T> dkt(kt.size());
  attn_diag::check_cuda(
      cudaMemcpy(dkt.data(), kt.data(), kt.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
  attention_kt<T, 128>
      <<<dim3(c.seqlen_q(), c.heads(), c.batch()), 128, (d + Sk) * sizeof(float), c.stream()>>>(
          c.q<T>(), dkt.data(), c.v<T>(), c.o<T>(), c.lse(), Sk, ldk, d, c.scale());
  cudaDeviceSynchronize();
}
static void call(const attn_diag::Call& c) {
  c.dtype() == attn_diag::DType::kFp32 ? launch<float>(c) : launch<__half>(c);
}
ATTN_DIAG_EXPORT(
    {.name = "attention_kt", .call = call, .dtypes = fp16 | fp32, .other_seqlen_k = true});

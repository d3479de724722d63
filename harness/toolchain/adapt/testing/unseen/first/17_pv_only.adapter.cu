#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "17_pv_only.cu"
static void call(const attn_diag::Call& c) {
  const int B = c.batch(), H = c.heads(), S = c.seqlen_q(), D = c.head_dim_v();
  attn_diag::DeviceBuffer<float> t(std::size_t(B) * H * S * D);
  launch_attn_context(t.data(), c.probs<float>(), c.v<float>(), B, H, S, c.seqlen_k(), D,
                      c.stream());
  cudaDeviceSynchronize();
  for (int b = 0; b < B; ++b)
    for (int s = 0; s < S; ++s)
      for (int h = 0; h < H; ++h)
        cudaMemcpy(c.o<float>() + ((std::size_t(b) * H + h) * S + s) * D,
                   t.data() + ((std::size_t(b) * S + s) * H + h) * D, D * 4,
                   cudaMemcpyDeviceToDevice);
}
ATTN_DIAG_EXPORT(
    {.name = "k", .call = call, .part = Part::kFromProbs, .dtypes = fp32, .other_seqlen_k = true});

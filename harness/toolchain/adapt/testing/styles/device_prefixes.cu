#include "row.cuh"

// [B, S, H, D]
__global__ void kernel_bshd(const float* Q, const float* K, const float* V, float* O, int S, int H,
                            int D) {
  const int row = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  if (threadIdx.x != 0) return;
  const long base = (long)b * S * H * D + h * D;
  attend_row(Q + base + (long)row * H * D, K + base, V + base, O + base + (long)row * H * D, S, D,
             H * D, 1.0f / sqrtf((float)D));
}

extern "C" void launch_attention(float* d_Q, float* d_K, float* d_V, float* d_Out, int B, int S,
                                 int H, int D) {
  kernel_bshd<<<dim3(S, H, B), 32>>>(d_Q, d_K, d_V, d_Out, S, H, D);
}

#include "row.cuh"

// (B, T, 3, NH, HS) -> (B, T, NH, HS)
__global__ void packed(float* out, const float* qkv, int T, int NH, int hs) {
  const int t = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  if (threadIdx.x != 0) return;
  const int C = NH * hs;
  const float* row = qkv + ((long)b * T + t) * 3 * C + h * hs;
  const float* first = qkv + (long)b * T * 3 * C + h * hs;
  attend_row(row, first + C, first + 2 * C, out + ((long)b * T + t) * C + h * hs, t + 1, hs, 3 * C,
             1.0f / sqrtf(hs));
}

void causal_attention_forward(float* out, const float* qkv, int B, int T, int C, int NH) {
  packed<<<dim3(T, NH, B), 32>>>(out, qkv, T, NH, C / NH);
}

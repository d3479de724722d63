/*
Causal self attention for a GPT-2 style model.
inp is the output of the qkv projection, (B, T, 3C), holding Q, K, V packed one after another.
out is (B, T, C). C = NH * HS.

One warp per (b, t, nh). Online softmax, no preatt/att buffers.
*/
#include <assert.h>
#include <cuda_runtime.h>
#include <math.h>

#define WARP_SIZE 32
#define MAX_HS_PER_LANE 4  // supports head sizes up to 128

static inline int ceil_div(int dividend, int divisor) { return (dividend + divisor - 1) / divisor; }

__device__ float warpReduceSum(float val) {
  for (int offset = 16; offset > 0; offset /= 2) {
    val += __shfl_xor_sync(0xFFFFFFFF, val, offset);
  }
  return val;
}

__global__ void attention_forward_kernel(float* out, const float* inp, int B, int T, int C,
                                         int NH) {
  int idx = (blockIdx.x * blockDim.x + threadIdx.x) / WARP_SIZE;
  int lane = threadIdx.x % WARP_SIZE;
  if (idx >= B * T * NH) {
    return;
  }

  int nh = idx % NH;
  int t = (idx / NH) % T;
  int b = idx / (NH * T);
  int C3 = C * 3;
  int hs = C / NH;
  float scale = 1.0f / sqrtf((float)hs);

  const float* query_t = inp + (size_t)b * T * C3 + (size_t)t * C3 + nh * hs;

  float q[MAX_HS_PER_LANE];
  float o[MAX_HS_PER_LANE];
  for (int i = 0; i < MAX_HS_PER_LANE; i++) {
    int c = lane + i * WARP_SIZE;
    q[i] = c < hs ? query_t[c] : 0.0f;
    o[i] = 0.0f;
  }

  float maxval = -INFINITY;
  float expsum = 0.0f;
  for (int t2 = 0; t2 <= t; t2++) {
    const float* key_t2 =
        inp + (size_t)b * T * C3 + (size_t)t2 * C3 + nh * hs + C;  // +C because it's key
    const float* value_t2 = key_t2 + C;                            // +C*2 because it's value

    float val = 0.0f;
    for (int i = 0; i < MAX_HS_PER_LANE; i++) {
      int c = lane + i * WARP_SIZE;
      if (c < hs) {
        val += q[i] * key_t2[c];
      }
    }
    val = warpReduceSum(val) * scale;

    float newmax = fmaxf(maxval, val);
    float corr = expf(maxval - newmax);
    float p = expf(val - newmax);
    expsum = expsum * corr + p;
    for (int i = 0; i < MAX_HS_PER_LANE; i++) {
      int c = lane + i * WARP_SIZE;
      if (c < hs) {
        o[i] = o[i] * corr + p * value_t2[c];
      }
    }
    maxval = newmax;
  }

  float* out_bth = out + (size_t)b * T * C + (size_t)t * C + nh * hs;
  for (int i = 0; i < MAX_HS_PER_LANE; i++) {
    int c = lane + i * WARP_SIZE;
    if (c < hs) {
      out_bth[c] = o[i] / expsum;
    }
  }
}

void attention_forward(float* out, const float* inp, int B, int T, int C, int NH,
                       const int block_size) {
  assert(C % NH == 0);
  assert(C / NH <= MAX_HS_PER_LANE * WARP_SIZE);
  assert(block_size % WARP_SIZE == 0);
  int total_warps = B * T * NH;
  int grid_size = ceil_div(total_warps * WARP_SIZE, block_size);
  attention_forward_kernel<<<grid_size, block_size>>>(out, inp, B, T, C, NH);
}

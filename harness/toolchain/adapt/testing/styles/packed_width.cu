// Naive attention of a GPT-2 training run, after three kernels.
#include <cuda_runtime.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// input is (B, T, 3C) Q,K,V
// preatt, att are (B, NH, T, T)
// output is (B, T, C)
__global__ void attention_query_key_kernel1(float* preatt, const float* inp, int B, int T, int C,
                                            int NH) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  int total_threads = B * NH * T * T;
  if (idx < total_threads) {
    int t2 = idx % T;
    int t = (idx / T) % T;
    if (t2 > t) {
      preatt[idx] = -INFINITY;
      return;
    }
    int h = (idx / (T * T)) % NH;
    int b = idx / (NH * T * T);
    int C3 = C * 3;
    int hs = C / NH;  // head size
    const float* query_t = inp + b * T * C3 + t * C3 + h * hs;
    const float* key_t2 = inp + b * T * C3 + t2 * C3 + h * hs + C;
    float val = 0.0f;
    for (int i = 0; i < hs; i++) val += query_t[i] * key_t2[i];
    val *= 1.0 / sqrtf(hs);
    preatt[idx] = val;
  }
}

__global__ void attention_softmax_kernel1(float* att, const float* preatt, int B, int T, int NH) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < B * T * NH) {
    int h = idx % NH;
    int t = (idx / NH) % T;
    int b = idx / (NH * T);
    const float* preatt_bth = preatt + b * NH * T * T + h * T * T + t * T;
    float* att_bth = att + b * NH * T * T + h * T * T + t * T;
    float maxval = -FLT_MAX;
    for (int t2 = 0; t2 <= t; t2++)
      if (preatt_bth[t2] > maxval) maxval = preatt_bth[t2];
    float expsum = 0.0f;
    for (int t2 = 0; t2 <= t; t2++) {
      float expv = expf(preatt_bth[t2] - maxval);
      expsum += expv;
      att_bth[t2] = expv;
    }
    float expsum_inv = expsum == 0.0f ? 0.0f : 1.0f / expsum;
    for (int t2 = 0; t2 < T; t2++) {
      if (t2 <= t)
        att_bth[t2] *= expsum_inv;
      else
        att_bth[t2] = 0.0f;
    }
  }
}

__global__ void attention_value_kernel1(float* out, const float* att, const float* inp, int B,
                                        int T, int C, int NH) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < B * T * NH) {
    int h = idx % NH;
    int t = (idx / NH) % T;
    int b = idx / (NH * T);
    int C3 = C * 3;
    int hs = C / NH;  // head size
    float* out_bth = out + b * T * C + t * C + h * hs;
    const float* att_bth = att + b * NH * T * T + h * T * T + t * T;
    for (int i = 0; i < hs; i++) out_bth[i] = 0.0f;
    for (int t2 = 0; t2 <= t; t2++) {
      const float* value_t2 = inp + b * T * C3 + t2 * C3 + h * hs + C * 2;
      for (int i = 0; i < hs; i++) out_bth[i] += att_bth[t2] * value_t2[i];
    }
  }
}

void attention_forward1(float* out, float* preatt, float* att, const float* inp, int B, int T,
                        int C, int NH, const int block_size) {
  int total_threads = B * NH * T * T;
  int num_blocks = (total_threads + block_size - 1) / block_size;
  attention_query_key_kernel1<<<num_blocks, block_size>>>(preatt, inp, B, T, C, NH);
  int softmax_num_blocks = (B * T * NH + block_size - 1) / block_size;
  attention_softmax_kernel1<<<softmax_num_blocks, block_size>>>(att, preatt, B, T, NH);
  attention_value_kernel1<<<softmax_num_blocks, block_size>>>(out, att, inp, B, T, C, NH);
}

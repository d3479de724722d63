// One row of attention in fp32, for the sources that adapt is tried on.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <math.h>

__device__ inline float as_float(float x) { return x; }
__device__ inline float as_float(__half x) { return __half2float(x); }
__device__ inline float as_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void put(float* to, float x) { *to = x; }
__device__ inline void put(__half* to, float x) { *to = __float2half(x); }
__device__ inline void put(__nv_bfloat16* to, float x) { *to = __float2bfloat16(x); }

// q and o: the row; k and v: the first row, with `step` elements from row to row. Returns m + ln l.
template <class E>
__device__ float attend_row(const E* q, const E* k, const E* v, E* o, int keys, int dim, long step,
                            float factor) {
  float top = -INFINITY, total = 0.0f;
  for (int j = 0; j < keys; ++j) {
    float dot = 0.0f;
    for (int x = 0; x < dim; ++x) dot += as_float(q[x]) * as_float(k[j * step + x]);
    top = fmaxf(top, dot * factor);
  }
  for (int j = 0; j < keys; ++j) {
    float dot = 0.0f;
    for (int x = 0; x < dim; ++x) dot += as_float(q[x]) * as_float(k[j * step + x]);
    total += expf(dot * factor - top);
  }
  for (int x = 0; x < dim; ++x) {
    float sum = 0.0f;
    for (int j = 0; j < keys; ++j) {
      float dot = 0.0f;
      for (int y = 0; y < dim; ++y) dot += as_float(q[y]) * as_float(k[j * step + y]);
      sum += expf(dot * factor - top) * as_float(v[j * step + x]);
    }
    put(o + x, sum / total);
  }
  return top + logf(total);
}

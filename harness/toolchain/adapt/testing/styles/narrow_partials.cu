#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
namespace fd {
constexpr int kTile = 32;
template <typename T>
__global__ void partial_kernel(const T* __restrict__ Q, const T* __restrict__ K,
                               const T* __restrict__ V, T* __restrict__ partial_O,
                               float* __restrict__ partial_m, float* __restrict__ partial_l,
                               int seq_len, int head_dim, int num_splits, float scale) {
  const int row = blockIdx.x, split = blockIdx.y, bh = blockIdx.z, lane = threadIdx.x;
  const int begin = split * kTile, end = min(begin + kTile, seq_len);
  const size_t base = (size_t)bh * seq_len * head_dim;
  __shared__ float p[kTile];
  __shared__ float m_s, l_s;
  if (begin + lane < end) {
    float s = 0.f;
    for (int d = 0; d < head_dim; ++d)
      s += (float)Q[base + row * head_dim + d] * (float)K[base + (begin + lane) * head_dim + d];
    p[lane] = s * scale;
  }
  __syncthreads();
  if (lane == 0) {
    float m = -INFINITY, l = 0.f;
    for (int j = 0; j < end - begin; ++j) m = fmaxf(m, p[j]);
    for (int j = 0; j < end - begin; ++j) {
      p[j] = __expf(p[j] - m);
      l += p[j];
    }
    m_s = m;
    l_s = l;
  }
  __syncthreads();
  const size_t at = ((size_t)bh * seq_len + row) * num_splits + split;
  for (int d = lane; d < head_dim; d += blockDim.x) {
    float acc = 0.f;
    for (int j = 0; j < end - begin; ++j) acc += p[j] * (float)V[base + (begin + j) * head_dim + d];
    partial_O[at * head_dim + d] = (T)acc;
  }
  if (lane == 0) {
    partial_m[at] = m_s;
    partial_l[at] = l_s;
  }
}
template <typename T>
__global__ void reduce_kernel(const T* partial_O, const float* partial_m, const float* partial_l,
                              T* O, int seq_len, int head_dim, int num_splits) {
  const int row = blockIdx.x, bh = blockIdx.y;
  const size_t at = ((size_t)bh * seq_len + row) * num_splits;
  float m = -INFINITY, l = 0.f;
  for (int s = 0; s < num_splits; ++s) m = fmaxf(m, partial_m[at + s]);
  for (int s = 0; s < num_splits; ++s) l += partial_l[at + s] * __expf(partial_m[at + s] - m);
  for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
    float o_sum = 0.f;
    for (int s = 0; s < num_splits; ++s) {
      const T* po = partial_O + (at + s) * head_dim;
      const float w = __expf(partial_m[at + s] - m), l_s = partial_l[at + s];
      (void)l_s;
      o_sum += w * static_cast<float>(po[d]);
    }
    O[((size_t)bh * seq_len + row) * head_dim + d] = (T)(o_sum / l);
  }
}
template <typename T>
void flash_decode(const T* Q, const T* K, const T* V, T* O, T* partial_O, float* partial_m,
                  float* partial_l, int batch, int heads, int seq_len, int head_dim, float scale,
                  cudaStream_t stream) {
  const int num_splits = (seq_len + kTile - 1) / kTile;
  partial_kernel<T><<<dim3(seq_len, num_splits, batch * heads), 32, 0, stream>>>(
      Q, K, V, partial_O, partial_m, partial_l, seq_len, head_dim, num_splits, scale);
  reduce_kernel<T><<<dim3(seq_len, batch * heads), 64, 0, stream>>>(
      partial_O, partial_m, partial_l, O, seq_len, head_dim, num_splits);
}
template void flash_decode<half>(const half*, const half*, const half*, half*, half*, float*,
                                 float*, int, int, int, int, float, cudaStream_t);
}  // namespace fd

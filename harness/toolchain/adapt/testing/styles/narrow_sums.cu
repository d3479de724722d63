#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
constexpr int KV_CHUNK = 64;
__global__ void split_fwd(const half* q, const half* k, const half* v, half* o_part, half* part_m,
                          half* part_l, int n, int d, int num_chunks, float scale) {
  int i = blockIdx.x, c = blockIdx.y;
  size_t bh = blockIdx.z;
  int lo = c * KV_CHUNK, hi = min(lo + KV_CHUNK, n);
  __shared__ float w[KV_CHUNK];
  __shared__ float st[2];
  for (int j = lo + threadIdx.x; j < hi; j += blockDim.x) {
    float s = 0;
    for (int x = 0; x < d; ++x)
      s += __half2float(q[(bh * n + i) * d + x]) * __half2float(k[(bh * n + j) * d + x]);
    w[j - lo] = s * scale;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float m = -INFINITY, l = 0;
    for (int j = 0; j < hi - lo; ++j) m = fmaxf(m, w[j]);
    for (int j = 0; j < hi - lo; ++j) {
      w[j] = expf(w[j] - m);
      l += w[j];
    }
    st[0] = m;
    st[1] = l;
  }
  __syncthreads();
  size_t at = (bh * n + i) * num_chunks + c;
  for (int x = threadIdx.x; x < d; x += blockDim.x) {
    float a = 0;
    for (int j = 0; j < hi - lo; ++j) a += w[j] * __half2float(v[(bh * n + lo + j) * d + x]);
    o_part[at * d + x] = __float2half(a / st[1]);
  }
  if (threadIdx.x == 0) {
    part_m[at] = __float2half(st[0]);
    part_l[at] = __float2half(st[1]);
  }
}
__global__ void split_merge(const half* o_part, const half* part_m, const half* part_l, half* o,
                            int n, int d, int num_chunks) {
  size_t b = ((size_t)blockIdx.y * n + blockIdx.x) * num_chunks;
  float m = -INFINITY, l = 0;
  for (int s = 0; s < num_chunks; ++s) m = fmaxf(m, __half2float(part_m[b + s]));
  for (int s = 0; s < num_chunks; ++s)
    l += expf(__half2float(part_m[b + s]) - m) * __half2float(part_l[b + s]);
  for (int x = threadIdx.x; x < d; x += blockDim.x) {
    float a = 0;
    for (int s = 0; s < num_chunks; ++s)
      a += expf(__half2float(part_m[b + s]) - m) * (float)part_l[b + s] *
           __half2float(o_part[(b + s) * d + x]);
    o[((size_t)blockIdx.y * n + blockIdx.x) * d + x] = __float2half(a / l);
  }
}
void split_attention(const half* q, const half* k, const half* v, half* o, int batch, int heads,
                     int n, int d, float scale, cudaStream_t stream) {
  int num_chunks = (n + KV_CHUNK - 1) / KV_CHUNK;
  half *o_part, *part_m, *part_l;
  size_t rows = (size_t)batch * heads * n * num_chunks;
  cudaMalloc(&o_part, rows * d * sizeof(half));
  cudaMalloc(&part_m, rows * sizeof(half));
  cudaMalloc(&part_l, rows * sizeof(half));
  split_fwd<<<dim3(n, num_chunks, batch * heads), 64, 0, stream>>>(q, k, v, o_part, part_m, part_l,
                                                                   n, d, num_chunks, scale);
  split_merge<<<dim3(n, batch * heads), 64, 0, stream>>>(o_part, part_m, part_l, o, n, d,
                                                         num_chunks);
  cudaStreamSynchronize(stream);
  cudaFree(o_part);
  cudaFree(part_m);
  cudaFree(part_l);
}

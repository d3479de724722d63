#include <cuda_fp16.h>
#include <cuda_runtime.h>

// "eager" attention of the fp16 path: what the framework does without the fused op.
// scores and probabilities are fp16 tensors, GQA by index (no repeat_kv).
//
// q [b, n_q, s, d]   k, v [b, n_kv, s, d]   buffer [b, n_q, s, s] fp16   out [b, s, n_q * d]

using fp16 = __half;

__global__ void eager_qk(fp16* scores, const fp16* q, const fp16* k, int n_q, int n_kv, int s,
                         int d, float scale, int causal) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  const int b = blockIdx.z / n_q, h = blockIdx.z % n_q;
  if (i >= s || j >= s) return;
  const fp16* qi = q + ((size_t)blockIdx.z * s + i) * d;
  const fp16* kj = k + (((size_t)b * n_kv + h / (n_q / n_kv)) * s + j) * d;
  float dot = 0.f;
  for (int x = 0; x < d; x++) dot += __half2float(qi[x]) * __half2float(kj[x]);
  fp16 r = __float2half(dot * scale);
  if (causal && j > i) r = __ushort_as_half((unsigned short)0xFC00U);  // -inf
  scores[((size_t)blockIdx.z * s + i) * s + j] = r;
}

// softmax in fp32, stored unnormalised as fp16, 1/sum apart
__global__ void eager_softmax(fp16* scores, float* inv, int s) {
  fp16* row = scores + (size_t)blockIdx.x * s;
  const int lane = threadIdx.x;
  float m = -65504.f, sum = 0.f;
  for (int j = lane; j < s; j += 32) m = fmaxf(m, __half2float(row[j]));
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
  for (int j = lane; j < s; j += 32) {
    const float e = __expf(__half2float(row[j]) - m);
    row[j] = __float2half(e);
    sum += __half2float(row[j]);
  }
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
  if (lane == 0) inv[blockIdx.x] = 1.f / sum;
}

__global__ void eager_pv(fp16* out, const fp16* probs, const float* inv, const fp16* v, int n_q,
                         int n_kv, int s, int d) {
  const int x = threadIdx.x, i = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  const size_t row = ((size_t)b * n_q + h) * s + i;
  const fp16* vh = v + ((size_t)b * n_kv + h / (n_q / n_kv)) * s * d;
  float acc = 0.f;
  for (int j = 0; j < s; j++)
    acc += __half2float(probs[row * s + j]) * __half2float(vh[(size_t)j * d + x]);
  out[((size_t)b * s + i) * n_q * d + h * d + x] = __float2half(acc * inv[row]);
}

struct EagerWorkspace {
  fp16* scores = nullptr;
  float* inv = nullptr;
  EagerWorkspace(int b, int n_q, int s) {
    cudaMalloc(&scores, sizeof(fp16) * b * n_q * s * s);
    cudaMalloc(&inv, sizeof(float) * b * n_q * s);
  }
  ~EagerWorkspace() {
    cudaFree(scores);
    cudaFree(inv);
  }
};

void eager_attention(fp16* out, const fp16* q, const fp16* k, const fp16* v,
                     const EagerWorkspace& ws, int b, int n_q, int n_kv, int s, int d, float scale,
                     int causal, cudaStream_t stream) {
  dim3 blk(16, 16), grd((s + 15) / 16, (s + 15) / 16, b * n_q);
  eager_qk<<<grd, blk, 0, stream>>>(ws.scores, q, k, n_q, n_kv, s, d, scale, causal);
  eager_softmax<<<b * n_q * s, 32, 0, stream>>>(ws.scores, ws.inv, s);
  eager_pv<<<dim3(s, n_q, b), d, 0, stream>>>(out, ws.scores, ws.inv, v, n_q, n_kv, s, d);
}

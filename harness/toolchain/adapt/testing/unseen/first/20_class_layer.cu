#include <cuda_runtime.h>
#include <cmath>
#include <stdexcept>

// Unfused attention with a persistent score buffer.

__global__ void scoreKernel(const float* q, const float* k, float* scores, int seqLen, int headDim,
                            float invSqrtDim, bool causal) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;  // key
  int row = blockIdx.y * blockDim.y + threadIdx.y;  // query
  int bh = blockIdx.z;
  if (row >= seqLen || col >= seqLen) return;

  const float* qRow = q + ((size_t)bh * seqLen + row) * headDim;
  const float* kRow = k + ((size_t)bh * seqLen + col) * headDim;
  float sum = 0.0f;
  for (int i = 0; i < headDim; ++i) sum += qRow[i] * kRow[i];
  float s = sum * invSqrtDim;
  if (causal && col > row) s = -1e9f;
  scores[((size_t)bh * seqLen + row) * seqLen + col] = s;
}

__global__ void softmaxKernel(float* scores, int seqLen, int rows) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;  // one warp per row
  if (row >= rows) return;
  float* s = scores + (size_t)row * seqLen;
  int lane = threadIdx.x;

  float maxVal = -INFINITY;
  for (int i = lane; i < seqLen; i += 32) maxVal = fmaxf(maxVal, s[i]);
  for (int d = 16; d; d >>= 1) maxVal = fmaxf(maxVal, __shfl_xor_sync(0xffffffff, maxVal, d));

  float sum = 0.0f;
  for (int i = lane; i < seqLen; i += 32) {
    s[i] = expf(s[i] - maxVal);
    sum += s[i];
  }
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, d);

  for (int i = lane; i < seqLen; i += 32) s[i] /= sum;
}

__global__ void contextKernel(const float* scores, const float* v, float* out, int seqLen,
                              int headDim) {
  int d = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int bh = blockIdx.z;
  if (row >= seqLen || d >= headDim) return;

  const float* s = scores + ((size_t)bh * seqLen + row) * seqLen;
  const float* vBase = v + (size_t)bh * seqLen * headDim + d;
  float sum = 0.0f;
  for (int i = 0; i < seqLen; ++i) sum += s[i] * vBase[(size_t)i * headDim];
  out[((size_t)bh * seqLen + row) * headDim + d] = sum;
}

class AttentionLayer {
 public:
  AttentionLayer(int batchSize, int numHeads, int maxSeqLen, int headDim, bool causal)
      : batchSize_(batchSize),
        numHeads_(numHeads),
        maxSeqLen_(maxSeqLen),
        headDim_(headDim),
        causal_(causal) {
    size_t bytes = sizeof(float) * (size_t)batchSize * numHeads * maxSeqLen * maxSeqLen;
    if (cudaMalloc(&scores_, bytes) != cudaSuccess)
      throw std::runtime_error("AttentionLayer: out of memory");
  }
  ~AttentionLayer() { cudaFree(scores_); }
  AttentionLayer(const AttentionLayer&) = delete;
  AttentionLayer& operator=(const AttentionLayer&) = delete;

  // q, k, v, out: [batch, heads, seqLen, headDim] on the device
  void forward(const float* q, const float* k, const float* v, float* out, int seqLen,
               cudaStream_t stream = nullptr) {
    if (seqLen > maxSeqLen_) throw std::invalid_argument("seqLen > maxSeqLen");
    const int bh = batchSize_ * numHeads_;
    const float invSqrtDim = 1.0f / std::sqrt(static_cast<float>(headDim_));

    dim3 block(16, 16);
    dim3 gridScore((seqLen + 15) / 16, (seqLen + 15) / 16, bh);
    scoreKernel<<<gridScore, block, 0, stream>>>(q, k, scores_, seqLen, headDim_, invSqrtDim,
                                                 causal_);

    const int rows = bh * seqLen;
    softmaxKernel<<<(rows + 3) / 4, dim3(32, 4), 0, stream>>>(scores_, seqLen, rows);

    dim3 gridCtx((headDim_ + 15) / 16, (seqLen + 15) / 16, bh);
    contextKernel<<<gridCtx, block, 0, stream>>>(scores_, v, out, seqLen, headDim_);
  }

 private:
  int batchSize_, numHeads_, maxSeqLen_, headDim_;
  bool causal_;
  float* scores_ = nullptr;
};

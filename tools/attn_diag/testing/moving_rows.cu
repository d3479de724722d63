// Row-per-block attention in fp32 whose result moves with the order of threads, for one reason or another,
// and in some with a second bug behind that.
#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cmath>

enum Flaw {
  kAtomics = 1,      // sums in the order in which lanes arrive: no flaw
  kUnscaled = 2,     // S without the softmax scale: a bug with a name
  kNoSyncwarp = 4,   // right while the warp stays converged
  kNoBarrier = 8,    // one warp reads what the other may have yet to write
  kLastReads = 16,   // which is the second, so that all is well where warps come in their order
  kCopiedOver = 32,  // a copy is issued into what is still read, and waited for when all is done
  kCopiedBeside =
      64,  // so, by a warp that has read it itself: it matters only where it comes first
};

constexpr int kThreads = 64;

template <int kFlaws>
__global__ void __launch_bounds__(kThreads) rows(const float* q, const float* k, const float* v,
                                                 float* o, float* lse, int S, int D, float scale) {
  __shared__ float sScores[128];
  __shared__ float sSum[1];
  __shared__ float sOut[64];
  const long long head = (long long)blockIdx.y * S * D;
  const int row = blockIdx.x;
  if (threadIdx.x == 0) sSum[0] = 0.0f;
  if (threadIdx.x < D) sOut[threadIdx.x] = 0.0f;
  __shared__ float sRow[64];
  if (threadIdx.x < D) sRow[threadIdx.x] = q[head + row * D + threadIdx.x];
  __syncthreads();
  if ((kFlaws & kCopiedOver) && threadIdx.x < D) {
    __pipeline_memcpy_async(&sRow[threadIdx.x], &k[head + threadIdx.x], sizeof(float));
    __pipeline_commit();
  }
  const int keys_at_once = kFlaws & kNoSyncwarp ? 32 : kThreads;
  if (threadIdx.x < keys_at_once)
    for (int j = threadIdx.x; j < S; j += keys_at_once) {
      float s = 0.0f;
      for (int d = 0; d < D; ++d) s += sRow[d] * k[head + j * D + d];
      sScores[j] = kFlaws & kUnscaled ? s : s * scale;
    }
  if (kFlaws & kCopiedBeside) {
    __syncwarp();
    if (threadIdx.x == 32)
      for (int d = 0; d < D; ++d) __pipeline_memcpy_async(&sRow[d], &k[head + d], sizeof(float));
    __pipeline_commit();
  }
  if (!(kFlaws & (kNoSyncwarp | kNoBarrier))) __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x / 32 == (kFlaws & kLastReads ? 1 : 0)) {
    float m = -INFINITY;
    for (int j = 0; j < S; ++j) m = fmaxf(m, sScores[j]);
    // Lanes take turns at the keys, or lane 0 takes all of them.
    const int lanes = kFlaws & kAtomics ? 32 : 1;
    if (lane < lanes) {
      float l = 0.0f;
      for (int j = lane; j < S; j += lanes) l += expf(sScores[j] - m);
      atomicAdd(&sSum[0], l);
      for (int d = 0; d < D; ++d) {
        float sum = 0.0f;
        for (int j = lane; j < S; j += lanes) sum += expf(sScores[j] - m) * v[head + j * D + d];
        atomicAdd(&sOut[d], sum);
      }
    }
    __syncwarp();
    if (lane == 0) lse[blockIdx.y * S + row] = m + logf(sSum[0]);
  }
  if (kFlaws & (kCopiedOver | kCopiedBeside)) __pipeline_wait_prior(0);
  __syncthreads();
  for (int d = threadIdx.x; d < D; d += kThreads) o[head + row * D + d] = sOut[d] / sSum[0];
}

// Each warp has a row, but both keep their scores in one place: right if one is done before the other begins.
__global__ void two_rows(const float* q, const float* k, const float* v, float* o, float* lse,
                         int S, int D, float scale) {
  __shared__ float sScores[128];
  const long long head = (long long)blockIdx.y * S * D;
  const int lane = threadIdx.x % 32, row = blockIdx.x * 2 + threadIdx.x / 32;
  if (row >= S) return;
  for (int j = lane; j < S; j += 32) {
    float s = 0.0f;
    for (int d = 0; d < D; ++d) s += q[head + row * D + d] * k[head + j * D + d];
    sScores[j] = s * scale;
  }
  __syncwarp();
  float m = -INFINITY, l = 0.0f;
  for (int j = 0; j < S; ++j) m = fmaxf(m, sScores[j]);
  for (int j = 0; j < S; ++j) l += expf(sScores[j] - m);
  for (int d = lane; d < D; d += 32) {
    float sum = 0.0f;
    for (int j = 0; j < S; ++j) sum += expf(sScores[j] - m) * v[head + j * D + d];
    o[head + row * D + d] = sum / l;
  }
  if (lane == 0) lse[blockIdx.y * S + row] = m + logf(l);
}

__device__ float over_warp(float x, bool is_sum) {
  for (int by = 16; by > 0; by /= 2) {
    const float other = __shfl_xor_sync(~0u, x, by);
    x = is_sum ? x + other : fmaxf(x, other);
  }
  return x;
}

// A warp has a row, and keeps its scores in global memory. A lane may look for the largest of four before the last of
// them is stored: it finds NaN there, which fmaxf() ignores, or whatever was in that memory.
__global__ void rows_in_memory(const float* q, const float* k, const float* v, float* o, float* lse,
                               float* scores, int S, int D, float scale) {
  const long long head = (long long)blockIdx.y * S * D;
  const int lane = threadIdx.x, row = blockIdx.x;
  scores += (blockIdx.y * S + row) * S;
  for (int j = 0; j < S; ++j) {
    float s = 0.0f;
    for (int d = lane; d < D; d += 32) s += q[head + row * D + d] * k[head + j * D + d];
    s = over_warp(s, true) * scale;
    if (lane == 0) scores[j] = s;
  }
  float m = -INFINITY, l = 0.0f;
  for (int j = max(S - 4, 0) + lane; j < S; j += 32) m = fmaxf(m, scores[j]);
  m = over_warp(m, false);
  for (int j = lane; j < S; j += 32) l += expf(scores[j] - m);
  l = over_warp(l, true);
  for (int d = lane; d < D; d += 32) {
    float sum = 0.0f;
    for (int j = 0; j < S; ++j) sum += expf(scores[j] - m) * v[head + j * D + d];
    o[head + row * D + d] = sum / l;
  }
  if (lane == 0) lse[blockIdx.y * S + row] = m + logf(l);
}

void call_in_memory(const attn_diag::Call& c, float* scores) {
  rows_in_memory<<<dim3(c.seqlen(), c.heads()), 32, 0, c.stream()>>>(
      c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.lse(), scores, c.seqlen(),
      c.head_dim(), c.scale());
}

void call_in_workspace(const attn_diag::Call& c) { call_in_memory(c, c.workspace<float>()); }

void call_in_buffer(const attn_diag::Call& c) {
  attn_diag::DeviceBuffer<float> scores(static_cast<std::size_t>(c.heads()) * c.seqlen() *
                                        c.seqlen());
  call_in_memory(c, scores.data());
}

void call_two(const attn_diag::Call& c) {
  two_rows<<<dim3((c.seqlen() + 1) / 2, c.heads()), kThreads, 0, c.stream()>>>(
      c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.lse(), c.seqlen(), c.head_dim(),
      c.scale());
}

template <int kFlaws>
void call(const attn_diag::Call& c) {
  rows<kFlaws><<<dim3(c.seqlen(), c.heads()), kThreads, 0, c.stream()>>>(
      c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.lse(), c.seqlen(), c.head_dim(),
      c.scale());
}

attn_diag::Declaration a_kernel(const char* name, void (*call)(const attn_diag::Call&)) {
  attn_diag::Declaration kernel;
  kernel.name = name;
  kernel.call = call;
  kernel.dtypes = attn_diag::words::fp32;
  kernel.max_seqlen_k = 128;
  kernel.tile = {1, 64};
  return kernel;
}

attn_diag::Declaration workspace_kernel() {
  attn_diag::Declaration kernel = a_kernel("in-workspace", call_in_workspace);
  kernel.workspace = [](const attn_diag::Problem& p, const attn_diag::Geometry&) {
    return static_cast<std::size_t>(p.heads) * p.seqlen_q * p.seqlen_k * sizeof(float);
  };
  return kernel;
}

template <int kFlaws>
attn_diag::Declaration rows_kernel(const char* name) {
  return a_kernel(name, call<kFlaws>);
}

ATTN_DIAG_EXPORT(
    a_kernel("one-for-two", call_two), rows_kernel<0>("whole"), rows_kernel<kAtomics>("atomics"),
    rows_kernel<kAtomics | kUnscaled>("atomics-unscaled"), rows_kernel<kNoSyncwarp>("warp"),
    rows_kernel<kNoSyncwarp | kUnscaled>("warp-unscaled"), rows_kernel<kNoBarrier>("race"),
    rows_kernel<kNoBarrier | kLastReads>("race-of-the-last"), rows_kernel<kUnscaled>("unscaled"),
    rows_kernel<kCopiedOver>("copied-over"), rows_kernel<kCopiedBeside>("copied-beside"),
    workspace_kernel(), a_kernel("in-buffer", call_in_buffer));

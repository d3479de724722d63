#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdexcept>

namespace infer {

constexpr int kWarpSize = 32;
constexpr int kWarpsPerBlock = 4;

template <typename T>
__device__ __forceinline__ float to_float(T x);
template <>
__device__ __forceinline__ float to_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ float to_float<half>(half x) {
  return __half2float(x);
}

template <typename T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ half from_float<half>(float x) {
  return __float2half(x);
}

// query/out : [batch, seqlen, n_heads, HEAD_DIM]
// key/value : [batch, seqlen, n_kv_heads, HEAD_DIM]
template <typename T, int HEAD_DIM>
__global__ void gqa_prefill_kernel(T* __restrict__ out, const T* __restrict__ query,
                                   const T* __restrict__ key, const T* __restrict__ value,
                                   int seqlen, int n_heads, int n_kv_heads, float sm_scale,
                                   bool is_causal) {
  static_assert(HEAD_DIM % kWarpSize == 0, "head dim must be a multiple of the warp size");
  constexpr int kPerLane = HEAD_DIM / kWarpSize;

  const int warp_id = threadIdx.x / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const int q_idx = blockIdx.x * kWarpsPerBlock + warp_id;
  const int head = blockIdx.y;
  const int batch = blockIdx.z;
  if (q_idx >= seqlen) return;

  const int group = n_heads / n_kv_heads;
  const int kv_head = head / group;

  const T* q_ptr = query + (((size_t)batch * seqlen + q_idx) * n_heads + head) * HEAD_DIM;
  const size_t kv_row = (size_t)n_kv_heads * HEAD_DIM;
  const T* k_ptr = key + (size_t)batch * seqlen * kv_row + kv_head * HEAD_DIM;
  const T* v_ptr = value + (size_t)batch * seqlen * kv_row + kv_head * HEAD_DIM;

  float q_reg[kPerLane], o_reg[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    q_reg[i] = to_float<T>(q_ptr[i * kWarpSize + lane]) * sm_scale;
    o_reg[i] = 0.f;
  }

  float m_i = -INFINITY;
  float l_i = 0.f;
  const int n_keys = is_causal ? q_idx + 1 : seqlen;
  for (int j = 0; j < n_keys; ++j) {
    float s = 0.f;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
      s += q_reg[i] * to_float<T>(k_ptr[j * kv_row + i * kWarpSize + lane]);
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) s += __shfl_xor_sync(0xffffffffu, s, mask);

    const float m_new = fmaxf(m_i, s);
    const float alpha = __expf(m_i - m_new);
    const float p = __expf(s - m_new);
    l_i = l_i * alpha + p;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i)
      o_reg[i] = o_reg[i] * alpha + p * to_float<T>(v_ptr[j * kv_row + i * kWarpSize + lane]);
    m_i = m_new;
  }

  T* o_ptr = out + (((size_t)batch * seqlen + q_idx) * n_heads + head) * HEAD_DIM;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) o_ptr[i * kWarpSize + lane] = from_float<T>(o_reg[i] / l_i);
}

template <typename T>
void launch_gqa_prefill(T* out, const T* query, const T* key, const T* value, int batch, int seqlen,
                        int n_heads, int n_kv_heads, int head_dim, float sm_scale, bool is_causal,
                        cudaStream_t stream) {
  if (n_heads % n_kv_heads != 0) throw std::invalid_argument("n_heads % n_kv_heads != 0");
  dim3 grid((seqlen + kWarpsPerBlock - 1) / kWarpsPerBlock, n_heads, batch);
  dim3 block(kWarpSize * kWarpsPerBlock);
#define LAUNCH(D)                                                                               \
  gqa_prefill_kernel<T, D><<<grid, block, 0, stream>>>(out, query, key, value, seqlen, n_heads, \
                                                       n_kv_heads, sm_scale, is_causal)
  switch (head_dim) {
    case 32:
      LAUNCH(32);
      break;
    case 64:
      LAUNCH(64);
      break;
    case 128:
      LAUNCH(128);
      break;
    default:
      throw std::invalid_argument("unsupported head_dim");
  }
#undef LAUNCH
}

template void launch_gqa_prefill<half>(half*, const half*, const half*, const half*, int, int, int,
                                       int, int, float, bool, cudaStream_t);
template void launch_gqa_prefill<float>(float*, const float*, const float*, const float*, int, int,
                                        int, int, int, float, bool, cudaStream_t);

}  // namespace infer

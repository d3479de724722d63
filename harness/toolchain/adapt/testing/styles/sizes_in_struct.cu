#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <memory>

namespace engine {

struct AttentionConfig {
  int batch_size;
  int num_q_heads;
  int num_kv_heads;
  int head_size;
  int q_len;
  int kv_len;
  bool causal;
};

// Tensors are batch-major, heads before tokens.
template <typename scalar_t>
__global__ void attention_kernel(const scalar_t* query, const scalar_t* key, const scalar_t* value,
                                 scalar_t* output, AttentionConfig cfg, float scale) {
  const int token = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  const int kv_head = head / (cfg.num_q_heads / cfg.num_kv_heads);
  const scalar_t* q =
      query + ((size_t)(batch * cfg.num_q_heads + head) * cfg.q_len + token) * cfg.head_size;
  const scalar_t* k =
      key + (size_t)(batch * cfg.num_kv_heads + kv_head) * cfg.kv_len * cfg.head_size;
  const scalar_t* v =
      value + (size_t)(batch * cfg.num_kv_heads + kv_head) * cfg.kv_len * cfg.head_size;
  const int visible = cfg.causal ? cfg.kv_len - cfg.q_len + token + 1 : cfg.kv_len;
  extern __shared__ float probs[];
  for (int j = threadIdx.x; j < visible; j += blockDim.x) {
    float s = 0.f;
    for (int d = 0; d < cfg.head_size; ++d)
      s += float(q[d]) * float(k[(size_t)j * cfg.head_size + d]);
    probs[j] = s * scale;
  }
  __syncthreads();
  float mx = -INFINITY, sum = 0.f;
  for (int j = 0; j < visible; ++j) mx = fmaxf(mx, probs[j]);
  for (int j = 0; j < visible; ++j) sum += __expf(probs[j] - mx);
  for (int d = threadIdx.x; d < cfg.head_size; d += blockDim.x) {
    float a = 0.f;
    for (int j = 0; j < visible; ++j)
      a += __expf(probs[j] - mx) * float(v[(size_t)j * cfg.head_size + d]);
    output[((size_t)(batch * cfg.num_q_heads + head) * cfg.q_len + token) * cfg.head_size + d] =
        scalar_t(a / sum);
  }
}

void attention_forward(const void* query, const void* key, const void* value, void* output,
                       const AttentionConfig& cfg, cudaStream_t stream) {
  const dim3 grid(cfg.q_len, cfg.num_q_heads, cfg.batch_size);
  const float scale = 1.0f / sqrtf(static_cast<float>(cfg.head_size));
  attention_kernel<__nv_bfloat16><<<grid, 64, cfg.kv_len * sizeof(float), stream>>>(
      static_cast<const __nv_bfloat16*>(query), static_cast<const __nv_bfloat16*>(key),
      static_cast<const __nv_bfloat16*>(value), static_cast<__nv_bfloat16*>(output), cfg, scale);
}

}  // namespace engine

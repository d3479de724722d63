/* Single-token attention for llama2-style inference in CUDA (fp32). */
#include <cuda_runtime.h>
#include <math.h>

typedef struct {
  int dim;         // transformer dimension
  int hidden_dim;  // for ffn layers
  int n_layers;    // number of layers
  int n_heads;     // number of query heads
  int n_kv_heads;  // number of key/value heads (can be < query heads because of multiquery)
  int vocab_size;
  int seq_len;  // max sequence length
} Config;

typedef struct {
  float* q;            // query (dim,)
  float* att;          // buffer for scores/attention values (n_heads, seq_len)
  float* xb;           // (dim,)
  float* key_cache;    // (layer, seq_len, kv_dim)
  float* value_cache;  // (layer, seq_len, kv_dim)
} RunState;

const int num_threads_lrg = 256;

__device__ void softmax_gpu(float* x, int size) {
  int tid = threadIdx.x;
  int step = blockDim.x;
  __shared__ float red[256];

  // find max value (for numerical stability)
  float max_val = -INFINITY;
  for (int i = tid; i < size; i += step) {
    if (x[i] > max_val) {
      max_val = x[i];
    }
  }
  red[tid] = max_val;
  __syncthreads();
  for (int s = step / 2; s > 0; s >>= 1) {
    if (tid < s) {
      red[tid] = fmaxf(red[tid], red[tid + s]);
    }
    __syncthreads();
  }
  max_val = red[0];
  __syncthreads();

  // exp and sum
  float sum = 0.0f;
  for (int i = tid; i < size; i += step) {
    x[i] = expf(x[i] - max_val);
    sum += x[i];
  }
  red[tid] = sum;
  __syncthreads();
  for (int s = step / 2; s > 0; s >>= 1) {
    if (tid < s) {
      red[tid] += red[tid + s];
    }
    __syncthreads();
  }
  sum = red[0];

  // normalize
  for (int i = tid; i < size; i += step) {
    x[i] /= sum;
  }
}

// Each block processes a single head
__global__ void multi_head_attention_kernel(int pos, int seq_len, float* sq, float* satt,
                                            float* sxb, float* key_cache, float* value_cache,
                                            int kv_dim, int kv_mul, int head_size, int loff) {
  int h = blockIdx.x;
  // get the query vector for this head
  float* q = sq + h * head_size;
  // attention scores for this head
  float* att = satt + h * seq_len;
  // iterate over all timesteps, including the current one
  for (int t = threadIdx.x; t <= pos; t += blockDim.x) {
    // get the key vector for this head and at this timestep
    float* k = key_cache + loff + t * kv_dim + (h / kv_mul) * head_size;
    float score = 0.0f;
    for (int i = 0; i < head_size; i++) {
      score += q[i] * k[i];
    }
    score /= sqrtf(head_size);
    att[t] = score;
  }
  __syncthreads();

  // softmax the scores to get attention weights, from 0..pos inclusively
  softmax_gpu(att, pos + 1);
  __syncthreads();

  // weighted sum of the values, store back into xb
  float* xb = sxb + h * head_size;
  for (int i = threadIdx.x; i < head_size; i += blockDim.x) {
    float val = 0.0f;
    for (int t = 0; t <= pos; t++) {
      float* v = value_cache + loff + t * kv_dim + (h / kv_mul) * head_size;
      val += att[t] * v[i];
    }
    xb[i] = val;
  }
}

void multi_head_attention(int pos, Config* p, RunState* s, int kv_dim, int kv_mul, int head_size,
                          int loff) {
  multi_head_attention_kernel<<<p->n_heads, num_threads_lrg>>>(pos, p->seq_len, s->q, s->att, s->xb,
                                                               s->key_cache, s->value_cache, kv_dim,
                                                               kv_mul, head_size, loff);
}

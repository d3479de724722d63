#include "row.cuh"

template <typename scalar_t>
__global__ void gqa_kernel(const scalar_t* query, const scalar_t* key, const scalar_t* value,
                           scalar_t* output, int64_t stride_qb, int64_t stride_qh,
                           int64_t stride_qm, int64_t stride_kb, int64_t stride_kh,
                           int64_t stride_kn, int64_t stride_vb, int64_t stride_vh,
                           int64_t stride_vn, int64_t stride_ob, int64_t stride_oh,
                           int64_t stride_om, int n_rep, int kv_len, int head_size, float scaling) {
  const int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  if (threadIdx.x != 0) return;
  attend_row(query + batch * stride_qb + head * stride_qh + row * stride_qm,
             key + batch * stride_kb + head / n_rep * stride_kh,
             value + batch * stride_vb + head / n_rep * stride_vh,
             output + batch * stride_ob + head * stride_oh + row * stride_om, kv_len, head_size,
             stride_kn, scaling);
}

void gqa_attention(const __nv_bfloat16* query, const __nv_bfloat16* key, const __nv_bfloat16* value,
                   __nv_bfloat16* output, int batch, int num_q_heads, int num_kv_heads, int q_len,
                   int kv_len, int head_size, int64_t stride_qb, int64_t stride_qh,
                   int64_t stride_qm, int64_t stride_kb, int64_t stride_kh, int64_t stride_kn,
                   int64_t stride_vb, int64_t stride_vh, int64_t stride_vn, int64_t stride_ob,
                   int64_t stride_oh, int64_t stride_om, float scaling) {
  gqa_kernel<<<dim3(q_len, num_q_heads, batch), 32>>>(
      query, key, value, output, stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn,
      stride_vb, stride_vh, stride_vn, stride_ob, stride_oh, stride_om, num_q_heads / num_kv_heads,
      kv_len, head_size, scaling);
}

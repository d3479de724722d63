// The tensors in global memory, as kernels take them.
#pragma once

namespace attn_diag {

template <class Element>
struct AttentionTensors {
  const Element* gQ;  // (batch, heads, seqlen_q, head_dim), memory order by problem.layout
  const Element* gK;  // (batch, kv_heads, seqlen_k, head_dim)
  const Element* gV;  // (batch, kv_heads, seqlen_k, head_dim_v)
  Element* gO;        // (batch, heads, seqlen_q, head_dim_v)
  float* gLse;        // (batch, heads, seqlen_q), always in this order
};

}  // namespace attn_diag

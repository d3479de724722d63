#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/coded_inputs.h>
#include <attn_diag/kernels/device_buffer.h>
#include "09_int8_kv_decode.cu"
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  attn_diag::CodedInput k = attn_diag::coded_k(c), v = attn_diag::coded_v(c);
  attn_diag::DeviceBuffer<int> lens(c.batch());
  lens.fill(c.seqlen_k());
  invoke_int8_kv_decode_attention(c.o<half>(), c.q<half>(), k.codes<int8_t>(), v.codes<int8_t>(),
                                  k.scales(), v.scales(), lens.data(), c.batch(), c.heads(),
                                  c.kv_heads(), c.head_dim(), c.seqlen_k(), c.scale(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {64, 128},
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .k_codes = {CodeType::kInt8, ScalePer::kToken},
                  .v_codes = {CodeType::kInt8, ScalePer::kToken},
                  .lse = Lse::kNone});

#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "08_flash_decoding_split.cu"
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  attn_diag::DeviceBuffer<char> w(
      flash_decode_workspace_size(c.batch(), c.heads(), c.num_splits()));
  flash_decode(c.q<half>(), c.k<half>(), c.v<half>(), c.o<half>(), w.data(), c.batch(), c.heads(),
               c.kv_heads(), c.seqlen_k(), c.num_splits(), c.stream());
}
ATTN_DIAG_EXPORT({.name = "k",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {128},
                  .layouts = bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .any_scale = false,
                  .num_splits = 4,
                  .lse = Lse::kNone});

#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "08_flash_decoding_cache.cu"

static std::size_t workspace(const attn_diag::Problem& p, const attn_diag::Geometry& g) {
  return engine::flash_decoding_workspace_size(p.batch, p.heads, g.num_splits);
}
static void call(const attn_diag::Call& c) {
  if (c.seqlen_q() != 1) c.refuse("one query");
  attn_diag::DeviceBuffer<int> lens(c.batch());
  lens.fill(c.seqlen_k());
  engine::flash_decoding(c.o<half>(), c.q<half>(), c.k<half>(), c.v<half>(), lens.data(),
                         c.workspace(), c.batch(), c.heads(), c.kv_heads(), c.seqlen_k(),
                         c.num_splits(), c.scale(), c.stream());
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "flash_decoding",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {128},
                  .layouts = bshd,
                  .grouped_heads = true,
                  .other_seqlen_k = true,
                  .tile = {1, 32},
                  .num_splits = 3,
                  .lse = Lse::kNone,
                  .workspace = workspace});

#include <attn_diag/kernels/bring.h>
#include <attn_diag/kernels/device_buffer.h>

#include "24_one_launch_split_ticket.cu"

static void call(const attn_diag::Call& c) {
  using Cfg = DefaultConfig;
  const int bh = c.batch() * c.heads(),
            q_blocks = (c.seqlen_q() + Cfg::kQueries - 1) / Cfg::kQueries;
  const size_t slots = size_t(bh) * q_blocks * c.num_splits() * Cfg::kQueries;
  attn_diag::DeviceBuffer<float> acc(slots * Cfg::kDim), lse(slots);
  attn_diag::DeviceBuffer<unsigned> tickets(size_t(bh) * q_blocks);
  tickets.fill(0);
  const SplitKvArgs args{c.q<half>(),  c.k<half>(),  c.v<half>(),    c.o<half>(),
                         c.lse(),      acc.data(),   lse.data(),     tickets.data(),
                         c.seqlen_q(), c.seqlen_k(), c.num_splits(), c.scale()};
  attn_diag::check_cuda(split_kv_attention(args, bh, c.stream()), "launch");
  cudaDeviceSynchronize();
}
ATTN_DIAG_EXPORT({.name = "split_ticket",
                  .call = call,
                  .dtypes = fp16,
                  .head_dims = {64},
                  .other_seqlen_k = true,
                  .tile = {4, 32},
                  .num_splits = 3,
                  .normalised_partials = true});

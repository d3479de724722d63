// Whether a problem makes sense, before any kernel is asked about it.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"
#include "harness/memory.h"

namespace attn_diag {
namespace {

void require_positive(std::int32_t value, std::string_view what) {
  if (value < 1) throw Error(fmt::format("{} must be at least 1, but is {}.", what, value));
}

}  // namespace

void check_problem(const Problem& p) {
  require_positive(p.batch, "The batch size");
  require_positive(p.heads, "The number of heads");
  require_positive(p.kv_heads, "The number of KV heads");
  require_positive(p.seqlen_q, "seqlen_q");
  require_positive(p.seqlen_k, "seqlen_k");
  require_positive(p.head_dim, "head_dim");
  require_positive(p.head_dim_v, "head_dim_v");
  if (p.heads % p.kv_heads != 0) {
    throw Error(fmt::format(
        "{} heads cannot share {} KV heads evenly: choose --kv-heads that divides --heads.",
        p.heads, p.kv_heads));
  }
  if (p.dtype == DType::kFp64)
    throw Error("fp64 is a type of reference data only: choose fp16, bf16 or fp32.");
  if (p.mask.kind == MaskKind::kWindow && (p.mask.window_left < 0 || p.mask.window_right < 0)) {
    throw Error(fmt::format("A window needs two sizes of at least 0, but has {} and {}.",
                            p.mask.window_left, p.mask.window_right));
  }
  const double cells = static_cast<double>(p.batch) *
                       std::max(static_cast<double>(p.heads) * p.seqlen_q,
                                static_cast<double>(p.kv_heads) * p.seqlen_k) *
                       std::max(p.head_dim, p.head_dim_v);
  const double bytes = cells * static_cast<double>(size_of(p.dtype));
  const double available = available_memory();
  if (bytes > 1e18 || (available > 0 && bytes > available)) {
    throw Error(
        fmt::format("The largest of q, k and v would take {}, but {} are free: choose a smaller "
                    "--batch, --heads, --seqlen or --head-dim.",
                    readable_bytes(bytes), readable_bytes(available)));
  }
}

}  // namespace attn_diag

// Whether a problem makes sense, before any kernel is asked about it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/error.h"
#include "harness/base/memory.h"

namespace attn_diag {
namespace {

void require_positive(std::int32_t value, std::string_view what) {
  if (value < 1) throw Error(fmt::format("{} must be at least 1, but is {}.", what, value));
}

// Tiles and splits of more are no kernel's, and their products would overflow.
constexpr std::int32_t kMostOfTile = 1 << 16;

struct DeclaredError {
  const char* name;
  double value, most;
};

// The least exact of what kernels are declared with: 8 bits of a product, of an exponential or of a logarithm.
constexpr double kMostUlps = 0x1p17, kMostFlush = 0x1p-10, kMostAbsolute = 0x1p-7;

}  // namespace

void check_geometry(const Geometry& g, const Problem& p) {
  const auto out_of_range = [](std::int32_t x) { return x < 1 || x > kMostOfTile; };
  if (out_of_range(g.tile.block_m) || out_of_range(g.tile.block_n) || out_of_range(g.num_splits) ||
      g.tiles_per_split < 1)
    throw Error(fmt::format(
        "Tiles of {} x {} in {} splits of {} tiles make no sense: each must be at least 1, and at "
        "most {}.",
        g.tile.block_m, g.tile.block_n, g.num_splits, g.tiles_per_split, kMostOfTile));
  const std::int64_t tiles = num_kv_tiles(p, g);
  if (std::int64_t{g.num_splits} * g.tiles_per_split < tiles)
    throw Error(fmt::format("{} splits of {} KV tiles do not cover the {} that there are.",
                            g.num_splits, g.tiles_per_split, tiles));
}

void check_arithmetic(const Arithmetic& a) {
  for (const DeclaredError& error : {DeclaredError{"dot_ulp", a.dot_ulp, kMostUlps},
                                     {"exp_ulp", a.exp_ulp, kMostUlps},
                                     {"exp_ulp_per_x", a.exp_ulp_per_x, kMostUlps},
                                     {"exp_flush", a.exp_flush, kMostFlush},
                                     {"log_ulp", a.log_ulp, kMostUlps},
                                     {"log_abs", a.log_abs, kMostAbsolute}})
    if (!(error.value >= 0 && error.value <= error.most))
      throw Error(fmt::format(
          "The declared arithmetic has {} = {}, which cannot be: it is an error of at least 0 and "
          "at "
          "most {}. With it nothing that a kernel computes could be called wrong, or right.",
          error.name, error.value, error.most));
}

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
  if (!std::isfinite(p.softmax_scale))
    throw Error(fmt::format("softmax_scale is {}, but must be a finite number.", p.softmax_scale));
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

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "harness/timing/bench.h"

namespace attn_diag {
namespace {

// Keys that one query sees.
std::int64_t visible_keys(const Problem& p, std::int64_t query) {
  const std::int64_t bottom_right = p.seqlen_k - p.seqlen_q;
  std::int64_t first = 0, last = p.seqlen_k - 1;
  if (p.mask.kind == MaskKind::kCausal) {
    last = query + (p.mask.alignment == CausalAlignment::kBottomRight ? bottom_right : 0);
  } else if (p.mask.kind == MaskKind::kWindow) {
    first = query + bottom_right - p.mask.window_left;
    last = query + bottom_right + p.mask.window_right;
  }
  first = std::max<std::int64_t>(first, 0);
  last = std::min<std::int64_t>(last, p.seqlen_k - 1);
  return std::max<std::int64_t>(last - first + 1, 0);
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

}  // namespace

std::optional<double> flops_per_sm_per_clock(const DevicePeaks& peaks, DType dtype) {
  const int architecture = peaks.compute_major * 10 + peaks.compute_minor;
  const bool tensor = dtype == DType::kFp16 || dtype == DType::kBf16;
  if (!tensor && dtype != DType::kFp32) return std::nullopt;
  switch (architecture) {
    case 80:
      return tensor ? 2048 : 128;
    case 86:
    case 89:  // of the data centre cards; half of it on GeForce
      return tensor ? 1024 : 256;
    case 90:
      return tensor ? 4096 : 256;
    case 100:
      return tensor ? 8192 : 256;
    default:
      return std::nullopt;
  }
}

Work work_of(const Problem& p) {
  double pairs = 0;
  for (std::int64_t query = 0; query < p.seqlen_q; ++query)
    pairs += static_cast<double>(visible_keys(p, query));
  const double heads = static_cast<double>(p.batch) * p.heads;
  const double kv_heads = static_cast<double>(p.batch) * p.kv_heads;
  const double dims = static_cast<double>(p.head_dim) + p.head_dim_v;
  Work work;
  work.flops = 2.0 * heads * pairs * dims;
  work.bytes =
      (heads * p.seqlen_q + kv_heads * p.seqlen_k) * dims * static_cast<double>(size_of(p.dtype)) +
      heads * p.seqlen_q * static_cast<double>(sizeof(float));
  return work;
}

double Floors::larger() const { return std::max(bytes_seconds, flops_seconds.value_or(0)); }

Floors floors_of(const Problem& problem, const DevicePeaks& peaks) {
  const Work work = work_of(problem);
  Floors floors;
  floors.bytes_seconds = work.bytes / peaks.copy_bytes_per_second;
  if (const auto rate = flops_per_sm_per_clock(peaks, problem.dtype))
    floors.flops_seconds = work.flops / (*rate * peaks.sm_count * peaks.clock_hz);
  return floors;
}

Timing summarise_samples(std::vector<double> seconds) {
  if (seconds.empty()) throw std::invalid_argument("summarise_samples: no samples");
  std::sort(seconds.begin(), seconds.end());
  Timing timing;
  timing.samples = static_cast<int>(seconds.size());
  timing.min = seconds.front();
  timing.lower_quartile = quantile(seconds, 0.25);
  timing.median = quantile(seconds, 0.5);
  timing.upper_quartile = quantile(seconds, 0.75);
  return timing;
}

std::vector<QueryRange> compared_queries(const Problem& p, double compare_limit) {
  constexpr std::int64_t kSampled = 64;  // queries at the start, in the middle and at the end
  const double products = static_cast<double>(p.batch) * p.heads * p.seqlen_q * p.seqlen_k *
                          (static_cast<double>(p.head_dim) + p.head_dim_v);
  if (products <= compare_limit || p.seqlen_q <= 3 * kSampled) return {{0, p.seqlen_q}};
  // The middle range straddles a tile border, whatever the power of two of the tile.
  const std::int64_t middle = p.seqlen_q / 2 - kSampled / 2;
  return {{0, kSampled}, {middle, middle + kSampled}, {p.seqlen_q - kSampled, p.seqlen_q}};
}

}  // namespace attn_diag

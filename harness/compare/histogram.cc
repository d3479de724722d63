#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attn_diag/harness/histogram.h"
#include "harness/compare/ulps.h"

namespace attn_diag {
namespace {

constexpr int kLowestOctave = -20;  // of ratios

bool narrow(DType type) { return type == DType::kFp16 || type == DType::kBf16; }

}  // namespace

int ulp_bin(double ulps) {
  if (!(ulps > 0.5)) return 0;
  if (!(ulps < 0x1p30)) return kUlpBins - 1;
  // The least k with ulps <= 2^(k-1).
  int exponent = 0;
  const double mantissa = std::frexp(ulps, &exponent);  // of [1/2, 1)
  return std::min(mantissa == 0.5 ? exponent : exponent + 1, kUlpBins - 1);
}

int ratio_bin(double ratio) {
  if (!(ratio > std::ldexp(1.0, kLowestOctave))) return 0;
  const double place = (std::log2(ratio) - kLowestOctave) * kRatioBinsPerOctave;
  return place >= kRatioBins - 2 ? kRatioBins - 1 : static_cast<int>(std::ceil(place));
}

double quantile(const std::vector<std::int64_t>& ratios, double q) {
  const std::int64_t all = std::accumulate(ratios.begin(), ratios.end(), std::int64_t{0});
  if (all == 0) return 0;
  // The least bin up to which at least a share q lies.
  const double wanted = q * static_cast<double>(all);
  std::int64_t below = 0;
  std::size_t bin = 0;
  for (; bin + 1 < ratios.size(); ++bin) {
    below += ratios[bin];
    if (static_cast<double>(below) >= wanted && below > 0) break;
  }
  if (bin == 0) return 0;
  if (bin + 1 == ratios.size()) return std::numeric_limits<double>::infinity();
  return std::exp2(kLowestOctave + static_cast<double>(bin) / kRatioBinsPerOctave);
}

DType storage_of(Tensor t, const Capture& capture) {
  const Arithmetic& a = capture.arithmetic;
  const DType recorded = capture.has(t) ? capture[t].dtype : DType::kFp32;
  if (narrow(recorded)) return recorded;
  if (t == Tensor::kO) return a.output;
  if (t == Tensor::kS && narrow(a.scores)) return a.scores;
  if (t == Tensor::kP && narrow(a.probs)) return a.probs;
  return narrow(a.accumulate) ? a.accumulate : DType::kFp32;
}

std::optional<double> error_in_ulps(DType storage, double actual, double expected, double bound) {
  const double error = std::fabs(actual - expected);
  if (!std::isfinite(error) || expected == 0 || !ulps_mean_something(storage, expected, bound))
    return std::nullopt;
  const UlpScale scale = ulp_scale(storage);
  const int exponent = std::ilogb(std::max(std::fabs(expected), scale.smallest_normal));
  return error / (std::ldexp(1.0, exponent) / scale.per_power_of_two);
}

}  // namespace attn_diag

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attn_diag/harness/numerics.h"

namespace attn_diag {
namespace {

constexpr int kLowestOctave = -20;  // of ratios

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

}  // namespace attn_diag

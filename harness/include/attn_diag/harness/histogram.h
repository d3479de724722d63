// The bins that errors are counted in, here and in reports.
#pragma once

#include <cstdint>
#include <vector>

namespace attn_diag {

// Bin 0: at most 1/2 ULP, which is rounding once; bin k: more than 2^(k-2) and at most 2^(k-1) ULP; the last
// one: all that is more.
inline constexpr int kUlpBins = 26;
int ulp_bin(double ulps);

// Counts of error over bound, kRatioBinsPerOctave to a factor of 2: bin 0 holds 0 and all up to 2^-20, the last
// all above 2^12. A quantile read from it is right within 5 %.
inline constexpr int kRatioBinsPerOctave = 16;
inline constexpr int kRatioBins = 32 * kRatioBinsPerOctave + 2;
int ratio_bin(double ratio);
// The upper edge of the bin in which a share `q` (0 to 1) of the counts lies; 0 of bin 0, inf of the last.
double quantile(const std::vector<std::int64_t>& ratios, double q);

}  // namespace attn_diag

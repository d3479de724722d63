#include "reference/counterfactual/narrow.h"

#include <cmath>
#include <limits>
#include <utility>

#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

std::pair<double, double> rounded(Narrow type, double value, double error) {
  round_both(type, value, error);
  return {value, error};
}

TEST_CASE("what rounds alike at both ends is exact, the rest lies between the two") {
  CHECK(rounded(Narrow::kFp16, 1 + 0x1p-12, 0x1p-14) == std::pair{1.0, 0.0});
  CHECK(rounded(Narrow::kFp16, 1 + 0x1p-11, 0x1p-14) == std::pair{1 + 0x1p-11, 0x1p-11});
  CHECK(rounded(Narrow::kFp16, 1, 0x1p-8) == std::pair{1.0, 0x1p-8});
  CHECK(rounded(Narrow::kBf16, -3, 0) == std::pair{-3.0, 0.0});
  CHECK(rounded(Narrow::kNone, 0.1, 0.01) == std::pair{0.1, 0.01});
}

TEST_CASE("tf32 cut off keeps ten bits, e5m2 two") {
  CHECK(round_to(Narrow::kTf32Cut, 1 + 0x1.8p-10) == 1 + 0x1p-10);
  CHECK(round_to(Narrow::kTf32Cut, -0x1.fffp-30) == -0x1.ffcp-30);
  CHECK(round_to(Narrow::kTf32, 0x1.fffp-30) == 0x1p-29);
  CHECK(round_to(Narrow::kFp8E5m2, 1.3) == 1.25);
  CHECK(round_to(Narrow::kFp8E5m2, 0x1.7p-16) == 0x1p-16);  // the least number
  CHECK(round_to(Narrow::kFp8E5m2, 57344) == 57344);
  CHECK(std::isinf(round_to(Narrow::kFp8E5m2, 7e4)));
}

TEST_CASE("where one end overflows nothing is said, and NaN stays NaN") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto [value, error] = rounded(Narrow::kFp16, 65519, 100);
  CHECK(std::isfinite(value));
  CHECK(error == kInf);
  CHECK(rounded(Narrow::kFp16, 7e4, 1) == std::pair{kInf, 0.0});
  CHECK(rounded(Narrow::kFp16Saturated, 7e4, 1) == std::pair{65504.0, 0.0});
  CHECK(std::isnan(rounded(Narrow::kFp16, std::nan(""), 1).first));
}

}  // namespace
}  // namespace attn_diag::reference

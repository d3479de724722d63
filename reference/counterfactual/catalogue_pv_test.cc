// The second product: hypotheses that round it, against a product spelled out.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

double to_bits(double x, int bits) {
  if (x == 0) return 0;
  const double quantum = std::exp2(std::floor(std::log2(std::fabs(x))) - bits);
  return std::nearbyint(x / quantum) * quantum;
}

TEST_CASE("product-narrow: P V of a tile is rounded every so many keys, in their order") {
  const testing::Case c = make_case({.block_n = 32, .mask = {}});
  const auto check = [&](const char* type, int bits, const char* label, int every) {
    check_rounded_output(c, variant_of(c, "product-narrow", {type, label}), [&](const Formula& f) {
      // Two tiles, of 32 and of 8 keys, in the frame of the max so far.
      Vec o(16, 0.0);
      double m = -INFINITY, l = 0;
      for (int t = 0; t < 2; ++t) {
        const int begin = 32 * t, end = std::min(40, begin + 32);
        const double before = m, now = std::max(m, tile(f, t).m);
        m = now;
        l = factor(before, m) * l + factor(tile(f, t).m, m) * tile(f, t).l;
        for (int d = 0; d < 16; ++d) {
          double sum = 0;
          for (int j = begin; j < end; ++j) {
            sum += std::exp(f.scores()[static_cast<std::size_t>(j)] - m) * f.v(j, d);
            if ((j - begin) % every == every - 1 || j == end - 1) sum = to_bits(sum, bits);
          }
          double& x = o[static_cast<std::size_t>(d)];
          x = factor(before, m) * x + sum;
        }
      }
      return times(1 / l, o);
    });
  };
  check("bf16", 7, "every = 1)", 1);
  check("bf16", 7, "every = 16", 16);
  check("bf16", 7, "every = 0", 32);
  check("fp16", 10, "every = 1)", 1);
}

}  // namespace
}  // namespace attn_diag::reference

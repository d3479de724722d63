#include "attn_diag/reference/reference.h"

#include <cmath>
#include <mutex>
#include <random>
#include <stdexcept>

#include "reference/testing/catch2_test.h"
#include "reference/testing/naive.h"
#include "reference/testing/random_case.h"

namespace attn_diag::reference {
namespace {

using testing::Case;

// Largest |a - b| over the tensor, relative to the larger magnitude or 1; 1e300 where only one is
// infinite or NaN.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return 1e300;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double d = std::fabs(a[i] - b[i]) / std::max({1.0, std::fabs(a[i]), std::fabs(b[i])});
    worst = std::max(worst, d >= 0 && d < 1e300 ? d : 1e300);
  }
  return worst;
}

Options values_only(int threads = 1) {
  Options options;
  options.bounds = false;
  options.threads = threads;
  return options;
}

TEST_CASE("every stage tensor equals the naive reference's over random shapes") {
  std::mt19937_64 random(20);
  for (int i = 0; i < 150; ++i) {
    const Case c = testing::random_case(random, i % 15 == 0 ? 80 : 20, true);
    const auto naive = testing::naive_attention(c);
    const Tensors got =
        compute(c.problem, c.geometry, Arithmetic{}, c.inputs(), values_only(1 + i % 3));
    for (const TensorInfo& t : kTensors) {
      const auto at = static_cast<std::size_t>(t.id);
      const bool merged = t.id == Tensor::kMergedL || t.id == Tensor::kMergedO;
      INFO("case " << i << ": " << t.name << " of " << c.describe());
      if (merged && !c.geometry.has_split_merge)
        CHECK(got.value[at].empty());
      else
        CHECK(distance(got.value[at], naive[at]) <
              1e-10 * std::max(1.0, c.input_scale * c.input_scale));
      CHECK(got.bound[at].empty());
    }
  }
}

}  // namespace
}  // namespace attn_diag::reference

#include "reference/row_functions.h"

#include <cmath>
#include <limits>
#include <vector>

#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

TEST_CASE("exp is within 2 ulp from 0 down to the end of the normal numbers") {
  std::vector<double> x, y;
  for (double a = 1e-12; a < 707; a *= 1.0001) x.push_back(-a);
  x.push_back(0.0);
  y.resize(x.size());
  exp_shifted(x.data(), x.size(), 0.0, y.data());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    const double ulp = std::ldexp(1.0, std::ilogb(static_cast<double>(exact)) - 52);
    worst = std::max(worst, static_cast<double>(std::abs(y[i] - exact)) / ulp);
  }
  INFO("worst error in ulp: " << worst);
  CHECK(worst <= 2.0);
  CHECK(worst > 0.1);
  CHECK(y.back() == 1.0);
}

TEST_CASE("exp of -inf and of what is too small is 0, of NaN is NaN, in place too") {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> x = {-inf, -1e300, -711.0, std::nan(""), 3.0, 3.0, 3.0, 3.0, 2.0};
  exp_shifted(x.data(), x.size(), 3.0, x.data());
  CHECK(x[0] == 0.0);
  CHECK(x[1] == 0.0);
  CHECK(x[2] == 0.0);
  CHECK(std::isnan(x[3]));
  CHECK(x[4] == 1.0);
  CHECK(x[8] == std::exp(-1.0));
}

}  // namespace
}  // namespace attn_diag::reference

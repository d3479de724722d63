// Kernels that are given S or P: what the reference makes of it, and its bounds.
#include <algorithm>
#include <cmath>
#include <random>

#include "attn_diag/reference/reference.h"
#include "reference/testing/catch2_test.h"
#include "reference/testing/float_types.h"
#include "reference/testing/random_case.h"
#include "reference/widen.h"

namespace attn_diag::reference {
namespace {

using testing::Case;

Arithmetic arithmetic_of(Part part, DType type) {
  Arithmetic a;
  a.part = part;
  a.scores = a.probs = type;
  return a;
}

const std::vector<double>& value(const Tensors& t, Tensor of) {
  return t.value[static_cast<std::size_t>(of)];
}
const std::vector<double>& bound(const Tensors& t, Tensor of) {
  return t.bound[static_cast<std::size_t>(of)];
}

double v_of(const Case& c, std::int32_t b, std::int32_t h, std::int32_t key, std::int32_t d) {
  const Problem& p = c.problem;
  return testing::element(c.v, p, p.kv_heads, p.seqlen_k, p.head_dim_v, b,
                          h / (p.heads / p.kv_heads), key, d);
}

}  // namespace

TEST_CASE("what is given is rounded once, to nearest") {
  std::mt19937_64 random(3);
  for (const DType type : {DType::kFp16, DType::kBf16, DType::kFp32})
    for (int i = 0; i < 200000; ++i) {
      const int exponent = static_cast<int>(random() % 44) - 28;
      double x = std::ldexp(static_cast<double>(random() >> 11), exponent - 53);
      // Every other one a hair beside a number half way between two of the type.
      if (i % 2 == 0) {
        const double near = testing::round_to(type, x);
        const double step = std::ldexp(1.0, std::ilogb(near) - (type == DType::kFp16   ? 11
                                                                : type == DType::kBf16 ? 8
                                                                                       : 24));
        x = near + step * (1 + std::ldexp(static_cast<double>(i % 3) - 1.0, -20));
      }
      if (i % 5 == 0) x = -x;
      REQUIRE(narrowed(type, x) == testing::round_to(type, x));
    }
  CHECK(std::isnan(narrowed(DType::kFp16, std::nan(""))));
  CHECK(narrowed(DType::kFp16, -HUGE_VAL) == -HUGE_VAL);
}

TEST_CASE("o is what S or P as given make of v, over random shapes") {
  std::mt19937_64 random(21);
  for (int i = 0; i < 60; ++i) {
    const Case c = testing::random_case(random, 24, true);
    const Problem& p = c.problem;
    for (const DType type : {DType::kFp16, DType::kFp32}) {
      Options options;
      options.threads = 1;
      const Tensors all = compute(p, c.geometry, Arithmetic{}, c.inputs(), options);
      const Tensors of_s =
          compute(p, c.geometry, arithmetic_of(Part::kFromScores, type), c.inputs(), options);
      const Tensors of_p =
          compute(p, c.geometry, arithmetic_of(Part::kFromProbs, type), c.inputs(), options);
      INFO("case " << i << ": " << c.describe());
      const auto n = static_cast<std::size_t>(p.seqlen_k);
      const auto dim = static_cast<std::size_t>(p.head_dim_v);
      for (std::size_t row = 0; row < value(all, Tensor::kLse).size(); ++row) {
        std::vector<double> weight(n), given(n);
        const double* const scores = value(all, Tensor::kS).data() + row * n;
        const double most = *std::max_element(scores, scores + n);
        const double given_most = testing::round_to(type, most);
        double sum = 0, sum_s = 0;
        for (std::size_t j = 0; j < n && most > -HUGE_VAL; ++j)
          sum += weight[j] = std::exp(scores[j] - most);
        for (std::size_t j = 0; j < n; ++j) {
          const double s = testing::round_to(type, scores[j]);
          CHECK(value(of_s, Tensor::kS)[row * n + j] == s);
          CHECK(bound(of_s, Tensor::kS)[row * n + j] == 0);
          CHECK(bound(of_p, Tensor::kP)[row * n + j] == 0);
          if (most > -HUGE_VAL) sum_s += given[j] = std::exp(s - given_most);
          const double exact = sum > 0 ? weight[j] / sum : 0;
          const double found = value(of_p, Tensor::kP)[row * n + j];
          // exp and the sum are not the same to the last bit: of a tie it may be the other neighbour.
          const double u = type == DType::kFp16 ? 0x1p-10 : 0x1p-23;
          CHECK(std::fabs(found - exact) <=
                u * exact + (type == DType::kFp16 ? 0x1p-24 : 0x1p-149));
          CHECK(found == testing::round_to(type, found));
        }
        const auto b = static_cast<std::int32_t>(row) / (p.heads * p.seqlen_q);
        const auto h = static_cast<std::int32_t>(row) / p.seqlen_q % p.heads;
        for (std::size_t d = 0; d < dim; ++d) {
          double o_of_s = 0, o_of_p = 0, size = 0;
          for (std::size_t j = 0; j < n; ++j) {
            const double v =
                v_of(c, b, h, static_cast<std::int32_t>(j), static_cast<std::int32_t>(d));
            const double p_j = value(of_p, Tensor::kP)[row * n + j];
            if (sum_s > 0) o_of_s += given[j] / sum_s * v;
            o_of_p += p_j * v;
            size += p_j * std::fabs(v);
          }
          const std::size_t at = row * dim + d;
          CHECK(std::fabs(value(of_s, Tensor::kO)[at] - o_of_s) <= 1e-9 * (1 + size));
          CHECK(std::fabs(value(of_p, Tensor::kO)[at] - o_of_p) <= 1e-12 * (1 + size));
          // What S and P were rounded to is no error of the kernel's.
          if (type == DType::kFp32)
            CHECK(bound(of_s, Tensor::kO)[at] <=
                  bound(all, Tensor::kO)[at] * (1 + 1e-3) + 1e-6 * size);
          CHECK(bound(of_p, Tensor::kO)[at] <= 0x1p-10 * size + 1e-6);
        }
      }
    }
  }
}

TEST_CASE(
    "sums of P and v in fp32, in any order, are within the bound, and it is no larger than that") {
  std::mt19937_64 random(22);
  double worst = 0;
  for (int i = 0; i < 40; ++i) {
    const Case c = testing::random_case(random, 60, true);
    const Problem& p = c.problem;
    Options options;
    options.threads = 1;
    Arithmetic a = arithmetic_of(Part::kFromProbs, DType::kFp32);
    a.output = DType::kFp32;
    const Tensors t = compute(p, c.geometry, a, c.inputs(), options);
    const auto n = static_cast<std::size_t>(p.seqlen_k);
    const auto dim = static_cast<std::size_t>(p.head_dim_v);
    for (std::size_t row = 0; row < value(t, Tensor::kLse).size(); ++row) {
      const auto b = static_cast<std::int32_t>(row) / (p.heads * p.seqlen_q);
      const auto h = static_cast<std::int32_t>(row) / p.seqlen_q % p.heads;
      for (std::size_t d = 0; d < dim; ++d) {
        float sum = 0;
        for (std::size_t j = 0; j < n; ++j) {
          const std::size_t key = i % 2 == 0 ? j : n - 1 - j;
          sum += static_cast<float>(value(t, Tensor::kP)[row * n + key]) *
                 static_cast<float>(
                     v_of(c, b, h, static_cast<std::int32_t>(key), static_cast<std::int32_t>(d)));
        }
        const std::size_t at = row * dim + d;
        const double error = std::fabs(static_cast<double>(sum) - value(t, Tensor::kO)[at]);
        REQUIRE(error <= bound(t, Tensor::kO)[at]);
        if (bound(t, Tensor::kO)[at] > 0) worst = std::max(worst, error / bound(t, Tensor::kO)[at]);
      }
    }
  }
  CHECK(worst > 0.02);
}

}  // namespace attn_diag::reference

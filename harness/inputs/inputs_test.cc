
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

Problem small(Layout layout) {
  Problem p;
  p.batch = 2;
  p.heads = 4;
  p.kv_heads = 2;
  p.seqlen_q = 5;
  p.seqlen_k = 7;
  p.head_dim = 8;
  p.head_dim_v = 3;
  p.dtype = DType::kFp32;
  p.layout = layout;
  p.softmax_scale = 0.35f;
  return p;
}

double k_at(const Problem& p, const InputData& inputs, int b, int h, int s, int d) {
  const Strides strides = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim);
  return load_element(inputs.k.data(), p.dtype,
                      b * strides.batch + h * strides.head + s * strides.seq + d);
}

}  // namespace

TEST_CASE("an element has the same value in either layout") {
  const Problem bhsd = small(Layout::kBHSD), bshd = small(Layout::kBSHD);
  for (const InputKindInfo& kind : input_kinds()) {
    const InputData a = make_inputs(bhsd, kind.name, 3, 1.0);
    const InputData b = make_inputs(bshd, kind.name, 3, 1.0);
    INFO(kind.name);
    for (int i = 0; i < 2; ++i)
      for (int h = 0; h < 2; ++h)
        for (int s = 0; s < 7; ++s)
          for (int d = 0; d < 8; ++d)
            REQUIRE(k_at(bhsd, a, i, h, s, d) == k_at(bshd, b, i, h, s, d));
  }
}

TEST_CASE("random inputs depend on coordinates and seed, not on the sizes of the problem") {
  Problem p = small(Layout::kBHSD), longer = p;
  longer.seqlen_k = 20;
  for (const char* kind : {"randn", "uniform", "ramp"}) {
    const InputData a = make_inputs(p, kind, 1, 1.0), b = make_inputs(longer, kind, 1, 1.0);
    INFO(kind);
    CHECK(k_at(p, a, 1, 1, 6, 7) == k_at(longer, b, 1, 1, 6, 7));
  }
  const InputData first = make_inputs(p, "randn", 1, 1.0), other = make_inputs(p, "randn", 2, 1.0);
  CHECK(first.k != other.k);
  CHECK(first.k == make_inputs(p, "randn", 1, 1.0).k);
}

TEST_CASE("no row of random inputs is another one rearranged") {
  const Problem p = small(Layout::kBHSD);
  const InputData inputs = make_inputs(p, "randn", 1, 1.0);
  std::set<std::vector<double>> rows;
  for (int b = 0; b < p.batch; ++b) {
    for (int h = 0; h < p.kv_heads; ++h) {
      for (int s = 0; s < p.seqlen_k; ++s) {
        std::vector<double> row;
        for (int d = 0; d < p.head_dim; ++d) row.push_back(k_at(p, inputs, b, h, s, d));
        std::sort(row.begin(), row.end());
        INFO(b << ' ' << h << ' ' << s);
        CHECK(rows.insert(row).second);
      }
    }
  }
}

TEST_CASE("q, k and v are independent of each other") {
  Problem p = small(Layout::kBHSD);
  p.heads = p.kv_heads;
  p.seqlen_q = p.seqlen_k;
  p.head_dim_v = p.head_dim;
  const InputData inputs = make_inputs(p, "randn", 0, 1.0);
  CHECK(inputs.q != inputs.k);
  CHECK(inputs.k != inputs.v);
  CHECK(inputs.q != inputs.v);
}

TEST_CASE("randn has mean 0 and variance 1, and is scaled before it is quantised") {
  Problem p = small(Layout::kBHSD);
  p.seqlen_k = 2000;
  const auto moments = [&](double scale) {
    const InputData inputs = make_inputs(p, "randn", 7, scale);
    const auto n = static_cast<std::int64_t>(inputs.k.size() / sizeof(float));
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = load_element(inputs.k.data(), p.dtype, i);
      sum += x;
      squares += x * x;
    }
    return std::pair(sum / static_cast<double>(n), squares / static_cast<double>(n));
  };
  const auto [mean, variance] = moments(1.0);
  CHECK(std::fabs(mean) < 0.02);  // 64,000 draws: five standard deviations
  CHECK(std::fabs(variance - 1.0) < 0.03);
  CHECK(std::fabs(moments(30.0).second - 900.0) < 27.0);
}

TEST_CASE("rising inputs raise the row max with the key") {
  Problem p = small(Layout::kBHSD);
  p.seqlen_k = 64;
  p.head_dim = 32;
  p.softmax_scale = 1.0f / std::sqrt(32.0f);
  const InputData inputs = make_inputs(p, "rising", 0, 1.0);
  const auto score = [&](int key) {
    double sum = 0;
    for (int d = 0; d < p.head_dim; ++d)
      sum += load_element(inputs.q.data(), p.dtype, d) * k_at(p, inputs, 0, 0, key, d);
    return sum * static_cast<double>(p.softmax_scale);
  };
  double early = -1e9, late = -1e9;
  for (int key = 0; key < 16; ++key) early = std::max(early, score(key));
  for (int key = 48; key < 64; ++key) late = std::max(late, score(key));
  CHECK(early < -3.0);
  CHECK(late > early + 3.0);
}

TEST_CASE("values too large for the type become infinite, and that is noticed") {
  Problem p = small(Layout::kBHSD);
  p.dtype = DType::kFp16;
  CHECK_FALSE(make_inputs(p, "ones", 0, 1000.0).has_nonfinite);
  CHECK(make_inputs(p, "ones", 0, 1e6).has_nonfinite);
}

TEST_CASE("an unknown kind of inputs is refused with the kinds there are") {
  CHECK_THROWS_WITH(make_inputs(small(Layout::kBHSD), "gauss", 0, 1.0),
                    contains("gauss") && contains("randn, uniform, ones, ramp"));
}

TEST_CASE("impossible problems are refused with the reason") {
  Problem p = small(Layout::kBHSD);
  p.kv_heads = 3;
  CHECK_THROWS_WITH(check_problem(p), contains("4 heads cannot share 3 KV heads"));
  p = small(Layout::kBHSD);
  p.seqlen_k = 0;
  CHECK_THROWS_WITH(check_problem(p), contains("seqlen_k must be at least 1"));
  p = small(Layout::kBHSD);
  p.seqlen_k = 2000000000;
  p.head_dim = 2000000000;
  CHECK_THROWS_WITH(check_problem(p), contains("q, k and v would take"));
}

}  // namespace attn_diag

// What kinds of inputs promise, and that the shipped kernels keep the exact ones exact.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/catch2.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/run.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/shipped_kernels.h"

namespace attn_diag {
namespace {

Problem problem_of(DType dtype) {
  Problem p;
  p.batch = 2;
  p.heads = 4;
  p.kv_heads = 2;
  p.seqlen_q = 70;
  p.seqlen_k = 150;
  p.head_dim = 64;
  p.head_dim_v = 64;
  p.dtype = dtype;
  p.mask.kind = MaskKind::kCausal;
  p.mask.alignment = CausalAlignment::kBottomRight;
  p.softmax_scale = 0.125f;
  return p;
}

std::vector<double> widened(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<double> out(bytes.size() / size_of(dtype));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = load_element(bytes.data(), dtype, static_cast<std::int64_t>(i));
  return out;
}

double share_beyond(const std::vector<double>& x, double limit) {
  return static_cast<double>(
             std::count_if(x.begin(), x.end(), [&](double a) { return std::fabs(a) > limit; })) /
         static_cast<double>(x.size());
}

// Attention of one row, in fp64.
struct Row {
  std::vector<double> score, weight;  // -inf and 0 where masked
  std::vector<double> magnitude;      // softmax_scale * sum |q_d k_d|
  double l = 0;
  std::vector<double> sum, sum_magnitude;  // of P.V, relative to the row max
};
Row row_of(const Problem& p, const InputData& inputs, std::int64_t b, std::int64_t h,
           std::int64_t i) {
  const std::vector<double> q = widened(inputs.q, p.dtype), k = widened(inputs.k, p.dtype),
                            v = widened(inputs.v, p.dtype);
  const std::int64_t kv = h / group_size(p), dims = p.head_dim;
  const auto at = [&](std::int64_t heads, std::int64_t head, std::int64_t len, std::int64_t s,
                      std::int64_t d) {
    return static_cast<std::size_t>(((b * heads + head) * len + s) * dims + d);
  };
  Row row;
  double top = -INFINITY;
  for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
    double dot = 0, size = 0;
    for (std::int64_t d = 0; d < dims; ++d) {
      const double term =
          q[at(p.heads, h, p.seqlen_q, i, d)] * k[at(p.kv_heads, kv, p.seqlen_k, j, d)];
      dot += term;
      size += std::fabs(term);
    }
    const bool visible = j <= i + p.seqlen_k - p.seqlen_q;
    row.score.push_back(visible ? dot * static_cast<double>(p.softmax_scale) : -INFINITY);
    row.magnitude.push_back(size * static_cast<double>(p.softmax_scale));
    top = std::max(top, row.score.back());
  }
  for (const double s : row.score) row.weight.push_back(std::exp(s - top));
  for (const double w : row.weight) row.l += w;
  for (std::int64_t d = 0; d < dims; ++d) {
    double sum = 0, size = 0;
    for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
      const double term =
          row.weight[static_cast<std::size_t>(j)] * v[at(p.kv_heads, kv, p.seqlen_k, j, d)];
      sum += term;
      size += std::fabs(term);
    }
    row.sum.push_back(sum);
    row.sum_magnitude.push_back(size);
  }
  return row;
}

// Rows on both sides of a tile edge, in both groups of heads.
template <class F>
void for_some_rows(const Problem& p, const F& f) {
  for (const std::int64_t b : {0, 1})
    for (const std::int64_t h : {0, 1, 3})
      for (const std::int64_t i : {0, 1, 15, 16, 31, 63, 64, 69})
        if (i < p.seqlen_q) f(b, h, i);
}

float recorded(const Capture& capture, Tensor t, std::int64_t b, std::int64_t h, std::int64_t i,
               std::int64_t last) {
  const std::vector<std::int64_t>& shape = capture[t].shape;
  return static_cast<float>(capture[t].at(((b * shape[1] + h) * shape[2] + i) * shape[3] + last));
}

}  // namespace

TEST_CASE("inputs that are scaled or clipped randn have the sizes they promise") {
  const Problem p = problem_of(DType::kFp16);
  const InputData randn = make_inputs(p, "randn", 3, 0.125),
                  small = make_inputs(p, "small", 3, 1.0);
  CHECK(small.q == randn.q);
  const InputData large = make_inputs(p, "large", 3, 1.0);
  CHECK(large.k == make_inputs(p, "randn", 3, 8.0).k);
  CHECK(large.v == make_inputs(p, "randn", 3, 256.0).v);
  CHECK_FALSE(large.has_nonfinite);
}

TEST_CASE("heavy inputs have the tails of Student's t with 3 degrees of freedom, cut at 256") {
  Problem p = problem_of(DType::kFp32);
  p.seqlen_k = 4000;
  const std::vector<double> k = widened(make_inputs(p, "heavy", 1, 1.0).k, p.dtype);
  // 1,024,000 draws. Quantiles of t_3: P(|t| > 3.182) = 0.05, P(|t| > 12.92) = 0.001.
  CHECK(std::fabs(share_beyond(k, 3.182) - 0.05) < 0.0015);
  CHECK(std::fabs(share_beyond(k, 12.92) - 0.001) < 0.0002);
  CHECK(share_beyond(k, 40.0) > 0.0);
  CHECK(share_beyond(k, 256.0) == 0.0);
}

TEST_CASE("large inputs: exp without the max overflows in every row that sees several keys") {
  const Problem p = problem_of(DType::kFp16);
  const InputData inputs = make_inputs(p, "large", 0, 1.0);
  for_some_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const Row row = row_of(p, inputs, b, h, i);
    const double top = *std::max_element(row.score.begin(), row.score.end());
    INFO(b << ' ' << h << ' ' << i);
    CHECK(top > 88.8);  // ln of the largest fp32
  });
}

TEST_CASE("cancel inputs: terms of q.k and of P.V are many times what they sum up to") {
  const Problem p = problem_of(DType::kFp16);
  const InputData inputs = make_inputs(p, "cancel", 0, 1.0);
  for_some_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
    const Row row = row_of(p, inputs, b, h, i);
    double score = 0, terms = 0, sum = 0, sum_terms = 0;
    for (std::size_t j = 0; j < row.score.size(); ++j) {
      if (std::isinf(row.score[j])) continue;
      score += std::fabs(row.score[j]);
      terms += row.magnitude[j];
    }
    INFO(b << ' ' << h << ' ' << i);
    CHECK(terms > 20.0 * score);
    if ((i + p.seqlen_k - p.seqlen_q) % 2 == 0) return;  // a pair is cut by the mask
    for (std::size_t d = 0; d < row.sum.size(); ++d) {
      sum += std::fabs(row.sum[d]);
      sum_terms += row.sum_magnitude[d];
    }
    CHECK(sum_terms > 100.0 * sum);
  });
}

TEST_CASE("integers: S of every kernel has the bits of fp64's, rounded once") {
  for (const std::string& name : testing::shipped_kernels()) {
    const Kernel kernel = Kernel::load(name, "host");
    Problem p = problem_of(DType::kFp16);
    // Where the scale is no power of two, the finished sum is multiplied, and rounded, once.
    for (const float scale : {0.125f, 0.1f}) {
      p.softmax_scale = scale;
      const InputData inputs = make_inputs(p, "integers", 5, 1.0);
      RunOptions options;
      options.gate = Gate::kQk;
      const Capture capture = run_kernel({kernel, p, inputs, options});
      for_some_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
        const Row row = row_of(p, inputs, b, h, i);
        for (std::size_t j = 0; j < row.score.size(); ++j) {
          INFO(name << ' ' << b << ' ' << h << ' ' << i << ' ' << j);
          REQUIRE(recorded(capture, Tensor::kS, b, h, i, static_cast<std::int64_t>(j)) ==
                  static_cast<float>(row.score[j]));
        }
      });
    }
  }
}

TEST_CASE("powers: P is 0 or 1, and P, l and P.V have the bits of fp64's in every kernel") {
  for (const std::string& name : testing::shipped_kernels()) {
    const Kernel kernel = Kernel::load(name, "host");
    const Problem p = problem_of(DType::kBf16);
    const InputData inputs = make_inputs(p, "powers", 5, 1.0);
    const Capture capture = run_kernel({kernel, p, inputs, {}});
    const std::int64_t tiles = num_kv_tiles(p, capture.geometry);
    int selective = 0;
    for_some_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
      const Row row = row_of(p, inputs, b, h, i);
      INFO(name << ' ' << b << ' ' << h << ' ' << i);
      for (std::size_t j = 0; j < row.score.size(); ++j) {
        REQUIRE((row.weight[j] == 1.0 || row.weight[j] < 0x1p-149));
        REQUIRE(recorded(capture, Tensor::kS, b, h, i, static_cast<std::int64_t>(j)) ==
                static_cast<float>(row.score[j]));
        const float probability =
            recorded(capture, Tensor::kP, b, h, i, static_cast<std::int64_t>(j));
        REQUIRE((probability == 0.0f || probability == 1.0f));
      }
      // The last split's accumulator; without splits, the row's.
      if (capture.geometry.num_splits == 1) {
        REQUIRE(recorded(capture, Tensor::kRunningL, b, h, i, tiles - 1) ==
                static_cast<float>(std::round(row.l)));
        for (std::int64_t d = 0; d < p.head_dim_v; ++d) {
          const auto cell =
              (((b * p.heads + h) * p.seqlen_q + i) * tiles + tiles - 1) * p.head_dim_v + d;
          REQUIRE(capture[Tensor::kRunningO].at(cell) ==
                  std::round(row.sum[static_cast<std::size_t>(d)]));
        }
      }
      // One division, rounded to fp32 and then to the type of o.
      for (std::int64_t d = 0; d < p.head_dim_v; ++d) {
        const double right = std::round(row.sum[static_cast<std::size_t>(d)]) / std::round(row.l);
        CHECK(std::fabs(static_cast<double>(recorded(capture, Tensor::kO, b, h, i, d)) - right) <=
              std::fabs(right) * (0x1p-8 + 0x1p-22));
      }
      if (row.l < 0.5 * static_cast<double>(p.seqlen_k - p.seqlen_q + i + 1)) ++selective;
    });
    CHECK(selective > 24);  // of 48 rows: P is not all ones
    CHECK_THAT(capture, matches_reference());
  }
}

}  // namespace attn_diag

#include "attn_diag/reference/reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>

#include "attn_diag/reference/sampled_rows.h"
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

// The largest distance relative to the numbers of b.
double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return 1e300;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) worst = std::max(worst, std::fabs(a[i] - b[i]) / std::fabs(b[i]));
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

// What the parts of a split call and of other memory orders must agree with: the whole, bit for bit.
TEST_CASE("rows asked for alone equal the same rows of the whole, for any number of threads") {
  std::mt19937_64 random(21);
  for (int i = 0; i < 60; ++i) {
    const Case c = testing::random_case(random, 40, false);
    const Problem& p = c.problem;
    Options options;
    options.threads = 1;
    const Tensors whole = compute(p, c.geometry, Arithmetic{}, c.inputs(), options);
    options.threads = 3;
    options.batch_begin = p.batch - 1;
    options.head_begin = p.heads / 2;
    options.query_begin = p.seqlen_q / 3;
    options.query_end = p.seqlen_q - p.seqlen_q / 4;
    const Tensors part = compute(p, c.geometry, Arithmetic{}, c.inputs(), options);
    const auto rows = static_cast<std::size_t>(options.query_end - options.query_begin);
    INFO("case " << i << ": " << c.describe());
    for (std::size_t t = 0; t < kNumTensors; ++t) {
      const std::size_t cells =
          whole.value[t].size() / static_cast<std::size_t>(p.batch * p.heads * p.seqlen_q);
      std::size_t at = 0;
      for (int h = options.head_begin; h < p.heads; ++h) {
        const auto first = static_cast<std::size_t>(((p.batch - 1) * p.heads + h) * p.seqlen_q +
                                                    options.query_begin) *
                           cells;
        for (std::size_t j = 0; j < rows * cells; ++j, ++at) {
          REQUIRE(part.value[t][at] == whole.value[t][first + j]);
          REQUIRE(part.bound[t][at] == whole.bound[t][first + j]);
        }
      }
      CHECK(part.value[t].size() == at);
    }
  }
}

TEST_CASE("sampled rows equal the same rows of the whole, wherever they lie") {
  std::mt19937_64 random(23);
  for (int i = 0; i < 60; ++i) {
    const Case c = testing::random_case(random, 40, false);
    const Problem& p = c.problem;
    Options options;
    options.threads = 1;
    const Tensors whole = compute(p, c.geometry, Arithmetic{}, c.inputs(), options);
    std::vector<std::int32_t> queries;
    for (std::int32_t q = 0; q < p.seqlen_q; ++q)
      if (random() % 3 == 0) queries.push_back(q);
    options.threads = 3;
    options.head_begin = p.heads / 2;
    INFO("case " << i << ": " << c.describe());
    std::atomic<std::int64_t> rows = 0, wrong = 0;
    for_each_sampled_rows(
        p, c.geometry, Arithmetic{}, c.inputs(), options, queries, [&](const SampledBlock& got) {
          for (std::int32_t r = 0; r < got.block.rows; ++r, ++rows)
            for (std::size_t t = 0; t < kNumTensors; ++t) {
              if (got.block.value[t] == nullptr) continue;
              const std::size_t cells =
                  whole.value[t].size() / static_cast<std::size_t>(p.batch * p.heads * p.seqlen_q);
              const auto row = static_cast<std::size_t>(
                  (got.block.batch * p.heads + got.block.head) * p.seqlen_q + got.queries[r]);
              for (std::size_t j = 0; j < cells; ++j) {
                const std::size_t at = static_cast<std::size_t>(r) * cells + j;
                wrong += got.block.value[t][at] != whole.value[t][row * cells + j] ||
                         got.block.bound[t][at] != whole.bound[t][row * cells + j];
              }
            }
        });
    CHECK(rows == p.batch * (p.heads - options.head_begin) * std::ssize(queries));
    CHECK(wrong == 0);
  }
}

TEST_CASE("a sample that is none is refused") {
  std::mt19937_64 random(24);
  const Case c = testing::random_case(random, 40, false);
  const auto refuse = [&](std::vector<std::int32_t> queries) {
    CHECK_THROWS_AS(for_each_sampled_rows(c.problem, c.geometry, Arithmetic{}, c.inputs(),
                                          Options{}, queries, [](const SampledBlock&) {}),
                    std::invalid_argument);
  };
  refuse({0, 0});
  refuse({-1});
  refuse({c.problem.seqlen_q});
}

TEST_CASE("one wanted tensor has the values and bounds it has among all") {
  std::mt19937_64 random(22);
  for (int i = 0; i < 40; ++i) {
    const Case c = testing::random_case(random, 30, false);
    Options options;
    options.threads = 1;
    options.mode = i % 2 == 0 ? BoundMode::kPrefix : BoundMode::kIsolate;
    const Tensors all = compute(c.problem, c.geometry, Arithmetic{}, c.inputs(), options);
    for (std::size_t t = 0; t < kNumTensors; ++t) {
      INFO("case " << i << ", " << kTensors[t].name << ": " << c.describe());
      options.tensors = 1u << t;
      const Tensors one = compute(c.problem, c.geometry, Arithmetic{}, c.inputs(), options);
      for (std::size_t other = 0; other < kNumTensors; ++other) {
        if (other != t) {
          CHECK(one.value[other].empty());
          CHECK(one.bound[other].empty());
          continue;
        }
        // Not bit for bit: the compiler may fuse multiply and add in one case and not in the other.
        CHECK(relative_distance(one.value[t], all.value[t]) < 1e-12);
        CHECK(relative_distance(one.bound[t], all.bound[t]) < 1e-12);
      }
    }
  }
}

TEST_CASE("the layout changes where q, k and v are read, not what comes out") {
  std::mt19937_64 random(23);
  Case c = testing::random_case(random, 30, false);
  c.problem.layout = Layout::kBHSD;
  c.problem.heads = c.problem.kv_heads = 3;
  fill_inputs(random, c);
  const Tensors by_head = compute(c.problem, c.geometry, Arithmetic{}, c.inputs(), values_only());
  Case other = c;
  other.problem.layout = Layout::kBSHD;
  const auto move = [&](const std::vector<std::byte>& from, std::vector<std::byte>& to, int seqlen,
                        int dim) {
    const auto row = static_cast<std::size_t>(dim) * size_of(c.problem.dtype);
    for (int b = 0; b < c.problem.batch; ++b)
      for (int h = 0; h < 3; ++h)
        for (int i = 0; i < seqlen; ++i)
          std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(
                                         static_cast<std::size_t>((b * 3 + h) * seqlen + i) * row),
                      row,
                      to.begin() + static_cast<std::ptrdiff_t>(
                                       static_cast<std::size_t>((b * seqlen + i) * 3 + h) * row));
  };
  move(c.q, other.q, c.problem.seqlen_q, c.problem.head_dim);
  move(c.k, other.k, c.problem.seqlen_k, c.problem.head_dim);
  move(c.v, other.v, c.problem.seqlen_k, c.problem.head_dim_v);
  const Tensors by_position =
      compute(other.problem, c.geometry, Arithmetic{}, other.inputs(), values_only());
  CHECK(by_head.value == by_position.value);
}

TEST_CASE("a row without a visible key has o = 0, lse = -inf, and bounds of 0") {
  Case c;
  c.problem.seqlen_q = 3;
  c.problem.seqlen_k = 2;
  c.problem.mask.kind = MaskKind::kCausal;
  c.problem.mask.alignment = CausalAlignment::kBottomRight;
  std::mt19937_64 random(24);
  fill_inputs(random, c);
  Options options;
  options.query_end = 1;
  const Tensors got = compute(c.problem, c.geometry, Arithmetic{}, c.inputs(), options);
  const auto value = [&](Tensor t) { return got.value[static_cast<std::size_t>(t)][0]; };
  CHECK(value(Tensor::kO) == 0);
  CHECK(value(Tensor::kLse) == -INFINITY);
  CHECK(value(Tensor::kM) == -INFINITY);
  CHECK(value(Tensor::kRunningL) == 0);
  for (const auto& bound : got.bound)
    for (const double b : bound) CHECK(b == 0);
}

TEST_CASE("the mask and the fully masked tiles follow from its definition") {
  std::mt19937_64 random(25);
  for (int i = 0; i < 200; ++i) {
    const Case c = testing::random_case(random, 30, false);
    const Problem& p = c.problem;
    const int n = c.geometry.tile.block_n, m = c.geometry.tile.block_m;
    INFO(c.describe());
    std::vector<std::vector<int>> seen(
        static_cast<std::size_t>((p.seqlen_q + m - 1) / m),
        std::vector<int>(static_cast<std::size_t>((p.seqlen_k + n - 1) / n)));
    for (int q = 0; q < p.seqlen_q; ++q)
      for (int k = 0; k < p.seqlen_k; ++k) {
        const int offset = p.seqlen_k - p.seqlen_q;
        bool sees = true;
        if (p.mask.kind == MaskKind::kCausal)
          sees = p.mask.alignment == CausalAlignment::kTopLeft ? k <= q : k <= q + offset;
        if (p.mask.kind == MaskKind::kWindow)
          sees = q + offset - p.mask.window_left <= k && k <= q + offset + p.mask.window_right;
        CHECK(visible(p, q, k) == sees);
        if (sees) ++seen[static_cast<std::size_t>(q / m)][static_cast<std::size_t>(k / n)];
      }
    for (int qt = 0; qt * m < p.seqlen_q; ++qt)
      for (int kt = 0; kt * n < p.seqlen_k; ++kt)
        CHECK(tile_fully_masked(p, c.geometry, qt, kt) ==
              (seen[static_cast<std::size_t>(qt)][static_cast<std::size_t>(kt)] == 0));
  }
}

TEST_CASE("what does not fit together is refused with the numbers found") {
  std::mt19937_64 random(26);
  Case good;
  good.problem.heads = 4;
  good.problem.kv_heads = 2;
  good.problem.seqlen_q = good.problem.seqlen_k = 8;
  good.geometry.tile = {4, 2};
  good.geometry.tiles_per_split = 4;
  fill_inputs(random, good);
  const auto error_of = [&](auto&& change) -> std::string {
    Case c = good;
    Inputs inputs = c.inputs();
    Options options;
    change(c, inputs, options);
    try {
      compute(c.problem, c.geometry, Arithmetic{}, inputs, options);
      return "accepted";
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
  };
  const auto refuses = [&](const std::string& message, auto&& change) {
    CHECK(error_of(change) == "reference: " + message);
  };
  CHECK(error_of([](Case&, Inputs&, Options&) {}) == "accepted");
  refuses("seqlen_k must be at least 1, found 0",
          [](Case& c, Inputs&, Options&) { c.problem.seqlen_k = 0; });
  refuses("kv_heads must divide heads exactly, found heads = 4, kv_heads = 3",
          [](Case& c, Inputs&, Options&) { c.problem.kv_heads = 3; });
  refuses("softmax_scale must be finite, found nan",
          [](Case& c, Inputs&, Options&) { c.problem.softmax_scale = NAN; });
  refuses("window_left must be at least 0, found -1", [](Case& c, Inputs&, Options&) {
    c.problem.mask.kind = MaskKind::kWindow;
    c.problem.mask.window_left = -1;
  });
  refuses("block_n must be at least 1, found 0",
          [](Case& c, Inputs&, Options&) { c.geometry.tile.block_n = 0; });
  refuses(
      "the splits must cover every KV tile: num_splits * tiles_per_split = 3, but there are 4 "
      "tiles",
      [](Case& c, Inputs&, Options&) { c.geometry.tiles_per_split = 3; });
  refuses("num_splits = 2 needs has_split_merge: without a merge there is no output",
          [](Case& c, Inputs&, Options&) { c.geometry.num_splits = 2; });
  refuses("q, k and v must be given; found a null pointer",
          [](Case&, Inputs& inputs, Options&) { inputs.v = nullptr; });
  refuses("query range must lie within 0..8, found 3..9", [](Case&, Inputs&, Options& options) {
    options.query_begin = 3;
    options.query_end = 9;
  });
  refuses("threads must be at least 0, found -1",
          [](Case&, Inputs&, Options& options) { options.threads = -1; });
}

TEST_CASE("what the visitor throws reaches the caller, from any thread") {
  std::mt19937_64 random(27);
  Case c;
  c.problem.heads = c.problem.kv_heads = 4;
  c.problem.seqlen_q = c.problem.seqlen_k = 64;
  c.geometry.tiles_per_split = 1;
  fill_inputs(random, c);
  Options options;
  options.threads = 4;
  CHECK_THROWS_AS(for_each_row_block(c.problem, c.geometry, Arithmetic{}, c.inputs(), options,
                                     [](const RowBlock& block) {
                                       if (block.head == 2) throw std::out_of_range("from a visit");
                                     }),
                  std::out_of_range);
}

}  // namespace
}  // namespace attn_diag::reference

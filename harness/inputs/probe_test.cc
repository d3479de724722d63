// What inputs of kind probe promise: that bugs show in o, for each row that can show them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "attn_diag/harness/run.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

Problem problem_of(std::int32_t seqlen, std::int32_t dims, DType dtype) {
  Problem p;
  p.batch = 2;
  p.heads = 2;
  p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = seqlen;
  p.head_dim = p.head_dim_v = dims;
  p.dtype = dtype;
  p.softmax_scale = static_cast<float>(1.0 / std::sqrt(dims));
  return p;
}

// One head of probe inputs, widened, and attention on it.
struct Head {
  Head(const Problem& problem, std::int64_t b, std::int64_t h) : p(problem) {
    const InputData inputs = make_inputs(p, "probe", 0, 1.0);
    const auto n = static_cast<std::int64_t>(p.seqlen_k) * p.head_dim;
    const std::int64_t first = (b * p.heads + h) * n;
    for (std::int64_t i = 0; i < n; ++i) {
      q.push_back(load_element(inputs.q.data(), p.dtype, first + i));
      k.push_back(load_element(inputs.k.data(), p.dtype, first + i));
      v.push_back(load_element(inputs.v.data(), p.dtype, first + i));
    }
  }
  double score(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t d = 0; d < p.head_dim; ++d) sum += q[at(i, d)] * k[at(j, d)];
    return sum * static_cast<double>(p.softmax_scale);
  }
  double value(std::int64_t j, std::int64_t d) const { return v[at(j, d)]; }
  std::size_t at(std::int64_t s, std::int64_t d) const {
    return static_cast<std::size_t>(s * p.head_dim + d);
  }

  Problem p;
  std::vector<double> q, k, v;
};

// The weights e^(S - max) of a row over its first `keys` keys.
std::vector<double> weights(const Head& head, std::int64_t row, std::int64_t keys) {
  std::vector<double> w;
  for (std::int64_t j = 0; j < keys; ++j) w.push_back(head.score(row, j));
  const double top = *std::max_element(w.begin(), w.end());
  for (double& x : w) x = std::exp(x - top);
  return w;
}

struct Output {
  std::vector<double> o, bound;
};

// o, and what rounding P and o to fp16 can move it by.
Output attend(const std::vector<double>& w, const Head& head) {
  Output out;
  double l = 0;
  for (const double x : w) l += x;
  constexpr double kUnit = 0x1p-11;
  for (std::int64_t d = 0; d < head.p.head_dim; ++d) {
    double sum = 0, magnitude = 0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double term = w[j] * head.value(static_cast<std::int64_t>(j), d);
      sum += term;
      magnitude += std::fabs(term);
    }
    out.o.push_back(sum / l);
    out.bound.push_back(kUnit * (magnitude / l + 2 * std::fabs(sum / l)));
  }
  return out;
}

// How many bounds the cell that moves most moves by.
double moved(const Output& right, const Output& wrong) {
  double worst = 0;
  for (std::size_t d = 0; d < right.o.size(); ++d)
    worst = std::max(worst, std::fabs(wrong.o[d] - right.o[d]) / (right.bound[d] + wrong.bound[d]));
  return worst;
}

}  // namespace

TEST_CASE("probe: the running max rises from tile to tile in most rows, and falls in the others") {
  for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32}) {
    for (const auto& [seqlen, dims] :
         std::vector<std::pair<int, int>>{{128, 64}, {500, 64}, {100, 128}, {96, 16}}) {
      const Head head(problem_of(seqlen, dims, dtype), 1, 0);
      int rising = 0, falling = 0;
      for (std::int64_t row = 0; row < seqlen; row += 3) {
        std::vector<double> score, running;
        double top = -std::numeric_limits<double>::infinity();
        for (std::int64_t j = 0; j < seqlen; ++j) {
          score.push_back(head.score(row, j));
          top = std::max(top, score.back());
          running.push_back(top);
        }
        CHECK(top < -3.0);
        CHECK(top > -12.0);
        const bool rises = *std::max_element(score.begin(), score.begin() + 16) <
                           *std::max_element(score.end() - seqlen % 16 - 16, score.end());
        ++(rises ? rising : falling);
        for (const int tile : {16, 32, 48, 64, 80, 128}) {
          for (std::int64_t end = 2 * tile; end - tile < seqlen; end += tile) {
            const auto last = std::min<std::int64_t>(end, seqlen);
            const double before = running[static_cast<std::size_t>(end - tile - 1)];
            const double own =
                *std::max_element(score.begin() + (end - tile), score.begin() + last);
            INFO("dtype " << static_cast<int>(dtype) << ", " << seqlen << " keys, row " << row
                          << ", tile " << tile << " to key " << last);
            REQUIRE((rises ? own > before + 0.01 : own < before - 0.01));
          }
        }
      }
      CHECK(rising > falling);
      CHECK(falling >= seqlen / 3 / 10);
    }
  }
}

TEST_CASE("probe: each key that is dropped or counted twice moves every row that sees it") {
  constexpr std::int64_t kKeys = 512;
  const Head head(problem_of(kKeys, 64, DType::kFp16), 0, 1);
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t row :
       {std::int64_t{0}, std::int64_t{15}, std::int64_t{16}, std::int64_t{63}, std::int64_t{64},
        std::int64_t{200}, kKeys - 1}) {
    for (const std::int64_t keys : {row + 1, kKeys}) {  // causal, and all
      const std::vector<double> w = weights(head, row, keys);
      const Output right = attend(w, head);
      for (std::size_t j = 0; j < w.size(); ++j) {
        for (const double times : {0.0, 2.0}) {
          if (w.size() == 1) continue;  // the only key: o is its v, however often it counts
          std::vector<double> wrong = w;
          wrong[j] *= times;
          const double by = moved(right, attend(wrong, head));
          INFO("row " << row << " of " << keys << " keys: key " << j << " times " << times);
          CHECK(by > 4.0);
          least = std::min(least, by);
        }
      }
    }
  }
  CHECK(least > 4.0);
}

TEST_CASE("probe: P that are flushed below 2^-10 move every row that sees all keys") {
  const Head head(problem_of(128, 64, DType::kFp16), 1, 0);
  for (std::int64_t row = 0; row < 128; ++row) {
    const std::vector<double> w = weights(head, row, 128);
    const double most = *std::max_element(w.begin(), w.end());
    double l = 0, kept = 0;
    std::vector<double> flushed = w;
    for (double& x : flushed) {
      l += x;
      if (x < most * 0x1p-10) x = 0;
      kept += x;
    }
    Output wrong = attend(flushed, head);
    for (double& x : wrong.o) x *= kept / l;  // l has them
    INFO("row " << row);
    CHECK(moved(attend(w, head), wrong) > 4.0);
  }
}

TEST_CASE("probe: a zero key counted, and a lost rescale move every row that has one") {
  const Head head(problem_of(256, 64, DType::kFp16), 1, 1);
  int rescaled = 0;
  for (std::int64_t row = 1; row < 256; row += 5) {
    for (const std::int64_t keys : {row + 1, std::int64_t{256}}) {
      INFO("row " << row << " of " << keys << " keys");
      const std::vector<double> w = weights(head, row, keys);
      const Output right = attend(w, head);
      double top = -std::numeric_limits<double>::infinity();
      for (std::int64_t j = 0; j < keys; ++j) top = std::max(top, head.score(row, j));
      // One key of zeros: its score is 0, far above all others.
      double l = 0;
      for (const double x : w) l += x;
      Output wrong = right;
      for (double& x : wrong.o) x *= l / (l + std::exp(-top));
      CHECK(moved(right, wrong) > 100.0);
      if (keys <= 64) continue;
      // The first tile of 64 stays in its own frame: weights relative to its own max.
      double first = -std::numeric_limits<double>::infinity();
      for (std::int64_t j = 0; j < 64; ++j) first = std::max(first, head.score(row, j));
      if (first == top) continue;  // scores fall: there is nothing to rescale
      ++rescaled;
      std::vector<double> unscaled = w;
      for (std::size_t j = 0; j < 64; ++j) unscaled[j] *= std::exp(top - first);
      CHECK(moved(right, attend(unscaled, head)) > 30.0);
    }
  }
  CHECK(rescaled > 50);
}

TEST_CASE("probe: other rows of q, k or v than its own move every row") {
  const Problem p = problem_of(128, 64, DType::kFp16);
  const Head head(p, 0, 0), other_head(p, 0, 1), other_batch(p, 1, 0);
  const auto with = [&](const std::function<void(Head&)>& change) {
    Head changed = head;
    change(changed);
    return changed;
  };
  const auto swap_rows = [&](std::vector<double>& x, std::int64_t distance) {
    const std::vector<double> old = x;
    for (std::int64_t s = 0; s < 128; ++s)
      for (std::int64_t d = 0; d < 64; ++d) x[head.at(s, d)] = old[head.at(s ^ distance, d)];
  };
  const std::vector<Head> wrongs = {
      with([&](Head& x) { x.q = other_head.q; }),
      with([&](Head& x) { x.k = other_head.k; }),
      with([&](Head& x) { x.v = other_head.v; }),
      with([&](Head& x) { x.v = other_batch.v; }),
      with([&](Head& x) { swap_rows(x.q, 8); }),   // fragments: r and r + 8
      with([&](Head& x) { swap_rows(x.v, 64); }),  // the tile before
      with([&](Head& x) { swap_rows(x.k, 64); }),
      with([&](Head& x) { swap_rows(x.k, 1); }),
      with([&](Head& x) {
        for (std::int64_t s = 0; s < 128; ++s)  // the last 8 dims are not multiplied
          for (std::int64_t d = 56; d < 64; ++d) x.k[head.at(s, d)] = 0;
      }),
  };
  for (std::int64_t row = 0; row < 128; ++row) {
    const Output right = attend(weights(head, row, 128), head);
    for (std::size_t i = 0; i < wrongs.size(); ++i) {
      INFO("row " << row << ", change " << i);
      CHECK(moved(right, attend(weights(wrongs[i], row, 128), wrongs[i])) > 10.0);
    }
  }
}

}  // namespace attn_diag

// Kernels in single precision that have a bug, against its prediction: every number within its bound.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"
#include "reference/testing/float_types.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

constexpr float kInf = std::numeric_limits<float>::infinity();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

struct Alphas {
  float l, o;
};

// One row of an online softmax with splits, all in fp32. What a bug changes is a member.
struct FloatKernel {
  const testing::Case& c;
  Formula f;
  std::function<float(int d)> q = [this](int d) { return float(f.q(f.row.query, d)); };
  std::function<float(int j, int d)> k = [this](int j, int d) { return float(f.k(j, d)); };
  std::function<float(int j, int d)> v = [this](int j, int d) { return float(f.v(j, d)); };
  std::function<bool(int j)> sees = [this](int j) { return f.sees(f.row.query, j); };
  float kappa = 1, masked = -kInf;
  int columns = f.dims(), padded_keys = 0, repeats = 1;
  bool narrow_probs = false, narrow_accumulator = false, own_frame = false, twice = false;
  bool narrow_partials = false, narrow_scores = false;
  float keep_below = -1;  // smaller rises of the max leave m as it is
  std::function<float(float)> exp_of_probs = [](float x) { return std::exp(x); };
  // alpha, m before and after, l before, number of the tile
  std::function<Alphas(float, float, float, float, int)> alphas = [](float a, float, float, float,
                                                                     int) {
    return Alphas{a, a};
  };
  // w, factor of the accumulator, term of the denominator; of m_n, l_n, m, n
  std::function<std::array<float, 3>(float, float, float, int)> weights = [](float m_n, float l_n,
                                                                             float m, int) {
    const float w = m_n == -kInf ? 0 : std::exp(m_n - m);
    return std::array{w, 1.0f, l_n};
  };
  std::function<float(float a, float l)> finish = [](float a, float l) {
    return l == 0 ? 0 : a / l;
  };
  std::function<float(float m, float l)> lse = [](float m, float l) { return m + std::log(l); };
  float more_l = 0;  // times e^-m, at the end
  DType output = DType::kFp16;

  struct Split {
    float m = -kInf, l = 0;
    std::vector<float> a;
  };

  float score(int j) const {
    float s = 0;
    for (int d = 0; d < columns; ++d) {
      s += q(d) * k(j, d);
      if (narrow_scores) s = float(round_to(DType::kFp16, s));
    }
    return s * (float(f.scale()) * kappa);
  }

  void add_tile(Split& x, int t) const {
    std::vector<float> s;
    std::vector<int> keys;
    const int end = std::min((t + 1) * f.block_n() + (twice ? 1 : 0), f.keys());
    for (int j = t * f.block_n(); j < end; ++j) {
      s.push_back(sees(j) ? score(j) : masked);
      keys.push_back(j);
    }
    if (t == f.tiles() - 1) s.insert(s.end(), static_cast<std::size_t>(padded_keys), 0.0f);
    const float tile_m = *std::max_element(s.begin(), s.end());
    const float m = std::max(x.m, tile_m);
    const float alpha = x.m == -kInf ? 0 : std::exp(x.m - m);
    const Alphas factors = alphas(alpha, x.m, m, x.l, t);
    const float frame = own_frame ? tile_m : m;
    float l = 0;
    std::vector<float> product(x.a.size(), 0.0f);
    for (std::size_t j = 0; j < s.size(); ++j) {
      const float p = s[j] == -kInf ? 0 : exp_of_probs(s[j] - frame);
      l += s[j] == -kInf ? 0 : exp_of_probs(s[j] - m);
      if (j >= keys.size()) continue;
      const float weight = narrow_probs ? float(round_to(DType::kFp16, p)) : p;
      for (std::size_t d = 0; d < product.size(); ++d)
        product[d] += weight * v(keys[j], static_cast<int>(d));
    }
    x.l = x.l * factors.l + l;
    for (std::size_t d = 0; d < product.size(); ++d) {
      x.a[d] = x.a[d] * factors.o + float(repeats) * product[d];
      if (narrow_accumulator) x.a[d] = float(round_to(DType::kFp16, x.a[d]));
    }
    if (!(m - x.m <= keep_below)) x.m = m;
  }

  // o, rounded to its type, and lse.
  std::pair<Vec, double> run() const {
    const auto n = static_cast<std::size_t>(c.geometry.num_splits);
    std::vector<Split> splits(n);
    float m = -kInf;
    for (std::size_t i = 0; i < n; ++i) {
      splits[i].a.assign(static_cast<std::size_t>(c.problem.head_dim_v), 0.0f);
      for (int t = 0; t < f.tiles(); ++t)
        if (t / c.geometry.tiles_per_split == static_cast<int>(i)) add_tile(splits[i], t);
      m = std::max(m, splits[i].m);
    }
    float l = 0;
    std::vector<float> a(splits[0].a.size(), 0.0f);
    for (std::size_t i = 0; i < n; ++i) {
      const auto [w, of_a, of_l] = weights(splits[i].m, splits[i].l, m, static_cast<int>(i));
      l += w * of_l;
      for (std::size_t d = 0; d < a.size(); ++d)
        if (splits[i].l > 0)
          a[d] +=
              w * of_a *
              (narrow_partials ? float(round_to(DType::kFp16, splits[i].a[d])) : splits[i].a[d]);
    }
    if (more_l != 0) l += more_l * std::exp(-m);
    Vec o;
    for (const float x : a) o.push_back(round_to(output, finish(x, l)));
    return {o, lse(m, l)};
  }
};

void check_as(DType output, const testing::Case& c, const Variant& variant,
              const std::function<void(FloatKernel&)>& plant) {
  const reference::PredictionInputs data(c.problem, c.geometry, {.output = output}, c.inputs());
  INFO(variant.label());
  Prediction out, right;
  int cells = 0, tight = 0;
  for (std::int32_t i = 0; i < c.problem.seqlen_q; i += 3) {
    const RowIndex row{i % c.problem.batch, i % c.problem.heads, i};
    INFO("query " << i);
    FloatKernel kernel{c, Formula{c, row}};
    kernel.output = output;
    plant(kernel);
    const auto [o, lse] = kernel.run();
    const std::uint32_t wanted = tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse);
    predict(data, std::span(&row, 1), variant.deviation, wanted, out);
    predict(data, std::span(&row, 1), {}, wanted, right);
    const Prediction::Values& predicted = out[Tensor::kO];
    for (std::size_t d = 0; d < o.size(); ++d) {
      INFO("dim " << d << ": " << o[d] << " for " << predicted.value[d] << ", bound "
                  << predicted.bound[d]);
      const bool within =
          o[d] == predicted.value[d] || std::fabs(o[d] - predicted.value[d]) <= predicted.bound[d];
      REQUIRE(within);
      ++cells;
      tight += predicted.bound[d] < 0.05 * (std::fabs(predicted.value[d]) + 0.1);
    }
    const Prediction::Values& sum = out[Tensor::kLse];
    INFO("lse " << lse << " for " << sum.value[0] << ", bound " << sum.bound[0]);
    if (variant.deviation.combine.lse == MergedLse::kOfSums)
      REQUIRE((lse == sum.value[0] || std::fabs(lse - sum.value[0]) <= sum.bound[0]));
  }
  CHECK(tight > cells * 9 / 10);  // a bound that allows everything would pass
}

// In fp32 the rounding of o does not hide the others.
void check(const testing::Case& c, const Variant& variant,
           const std::function<void(FloatKernel&)>& plant) {
  check_as(DType::kFp16, c, variant, plant);
  check_as(DType::kFp32, c, variant, plant);
}

const Shape kTiled{.seqlen_q = 70, .seqlen_k = 70, .head_dim = 32, .mask = kCausal};
const Shape kSplit{
    .seqlen_q = 70, .seqlen_k = 70, .head_dim = 32, .block_n = 8, .splits = 3, .mask = {}};

TEST_CASE("where exponents may be off by more than 1/2 no number is claimed") {
  const testing::Case c = make_case({});
  const reference::PredictionInputs data(c.problem, c.geometry, {}, c.inputs());
  Deviation hot;
  const std::array<RowIndex, 1> row = {RowIndex{0, 1, 20}};
  Prediction out;
  for (const double kappa : {1.0, 8.0, 1e6}) {
    hot.logits.kappa = kappa;
    predict(data, row, hot, tensor_bit(Tensor::kLse), out);
    CHECK((out[Tensor::kLse].bound.front() > 1e6) == (kappa > 8));
  }
}

// Rounding twice, to fp32 and then to fp16, is now and then not rounding once.
TEST_CASE("bounds of scores that are summed in fp16 hold for every sum") {
  const Shape large{
      .seqlen_q = 150, .seqlen_k = 150, .head_dim = 64, .block_m = 32, .block_n = 32, .mask = {}};
  const testing::Case c = make_case(large);
  check(c, variant_of(c, "scores-narrow", {"fp16,", "every = 1)"}),
        [](FloatKernel& x) { x.narrow_scores = true; });
}

TEST_CASE("bounds of bugs of logits and masks hold in fp32") {
  const testing::Case c = make_case(kTiled);
  check(c, {}, [](FloatKernel&) {});
  check(c, variant_of(c, "temperature").at(4), [](FloatKernel& x) { x.kappa = 4; });
  check(c, variant_of(c, "temperature").at(0.25), [](FloatKernel& x) { x.kappa = 0.25f; });
  check(c, variant_of(c, "columns-missing", {"columns = 24", "first"}),
        [](FloatKernel& x) { x.columns = 24; });
  check(c, variant_of(c, "mask-missing", {"all"}),
        [](FloatKernel& x) { x.sees = [](int) { return true; }; });
  check(c, variant_of(c, "mask-shift", {"last = 1,", "all"}),
        [](FloatKernel& x) { x.sees = [&x](int j) { return j <= x.f.row.query + 1; }; });
  check(c, variant_of(c, "mask-inverted", {"hidden", "all"}),
        [](FloatKernel& x) { x.sees = [&x](int j) { return j > x.f.row.query; }; });
  check(c, variant_of(c, "masked-score-zero", {"all"}), [](FloatKernel& x) { x.masked = 0; });
  const testing::Case tail = make_case({.seqlen_k = 37});
  check(tail, variant_of(tail, "padding-counted", {"zeros)"}),
        [](FloatKernel& x) { x.padded_keys = 11; });
  check(c, variant_of(c, "boundary-key-twice"), [](FloatKernel& x) { x.twice = true; });
}

TEST_CASE("bounds of bugs of reading hold in fp32") {
  const testing::Case c = make_case(kTiled);
  check(c, variant_of(c, "gqa-map", {"k and v", "= head 0"}), [](FloatKernel& x) {
    x.k = [&x](int j, int d) { return float(x.f.k_of(x.f.row.batch, 0, j, d)); };
    x.v = [&x](int j, int d) { return float(x.f.v_of(x.f.row.batch, 0, j, d)); };
  });
  check(c, variant_of(c, "batch-zero", {"operand = v"}), [](FloatKernel& x) {
    x.v = [&x](int j, int d) { return float(x.f.v_of(0, x.f.row.head / 2, j, d)); };
  });
  check(c, variant_of(c, "stale-tile", {"operand = v", "tiles = 1", "right"}), [](FloatKernel& x) {
    x.v = [&x](int j, int d) { return float(x.f.v(j < 16 ? j : j - 16, d)); };
  });
  check(c, variant_of(c, "tile-columns-mixed", {"operand = k", "d ^ 8)"}),
        [](FloatKernel& x) { x.k = [&x](int j, int d) { return float(x.f.k(j, d ^ 8)); }; });
}

TEST_CASE("bounds of bugs from tile to tile hold in fp32") {
  const testing::Case c = make_case(kTiled);
  const auto with_alphas = [&](const Variant& variant,
                               std::function<Alphas(float, float, float, float, int)> alphas) {
    check(c, variant, [&](FloatKernel& x) { x.alphas = alphas; });
  };
  with_alphas(variant_of(c, "alpha-missing-l"), [](float a, float, float, float, int) {
    return Alphas{1, a};
  });
  with_alphas(variant_of(c, "alpha-missing-o"), [](float a, float, float, float, int) {
    return Alphas{a, 1};
  });
  with_alphas(variant_of(c, "alpha-missing"), [](float, float, float, float, int) {
    return Alphas{1, 1};
  });
  with_alphas(variant_of(c, "alpha-inverted", {"l and o"}),
              [](float, float from, float to, float, int) {
                const float a = from == -kInf ? 0 : std::exp(to - from);
                return Alphas{a, a};
              });
  with_alphas(variant_of(c, "alpha-times-l", {"all"}), [](float a, float, float, float l, int) {
    return Alphas{a, a * l};
  });
  with_alphas(variant_of(c, "alpha-missing-on-one-tile", {"tile = 2", "of = o"}),
              [](float a, float, float, float, int t) {
                return Alphas{a, t == 2 ? 1 : a};
              });
  with_alphas(variant_of(c, "state-reset", {"of = o", "all"}),
              [](float a, float, float, float, int) {
                return Alphas{a, 0};
              });
  check(c, variant_of(c, "tile-frame", {"of = o", "every tile"}),
        [](FloatKernel& x) { x.own_frame = true; });
  check(c, variant_of(c, "probs-narrow", {"type = fp16, in = P V"}),
        [](FloatKernel& x) { x.narrow_probs = true; });
  check(c, variant_of(c, "accumulator-narrow", {"type = fp16)"}),
        [](FloatKernel& x) { x.narrow_accumulator = true; });
  check(c, variant_of(c, "exp-base", {"log2 e", "in = P and alpha)"}), [](FloatKernel& x) {
    x.exp_of_probs = [](float y) { return std::exp(y * 1.44269504f); };
    x.alphas = [](float, float from, float to, float, int) {
      const float a = from == -kInf ? 0 : std::exp((from - to) * 1.44269504f);
      return Alphas{a, a};
    };
  });
  check(c, variant_of(c, "exp-linear", {"in = P)"}), [](FloatKernel& x) {
    x.exp_of_probs = [](float y) {
      const float whole = std::floor(y * 1.44269504f);
      return std::exp2(whole) * (1 + (y * 1.44269504f - whole));
    };
  });
  check(c, variant_of(c, "rescale-skipped-max-kept", {"below = 2)"}), [](FloatKernel& x) {
    x.keep_below = 2;
    x.alphas = [](float a, float from, float to, float, int) {
      const float kept = to - from <= 2 ? 1 : a;
      return Alphas{kept, kept};
    };
  });
  check(c, variant_of(c, "product-times-n", {"n = 4"}), [](FloatKernel& x) { x.repeats = 4; });
}

TEST_CASE("bounds of bugs of the merge and the end hold in fp32") {
  const testing::Case c = make_case(kSplit);
  const auto with_weights =
      [&](const Variant& variant,
          std::function<std::array<float, 3>(float, float, float, int)> weights) {
        check(c, variant, [&](FloatKernel& x) { x.weights = weights; });
      };
  check(c, {}, [](FloatKernel&) {});
  with_weights(variant_of(c, "combine-lse-base", {"right", "natural lse"}),
               [](float m, float l, float top, int) {
                 const float w = std::exp2((m - top) + std::log(l));
                 return std::array{w, 1 / l, 1.0f};
               });
  with_weights(variant_of(c, "combine-mean", {"same"}), [](float, float l, float, int) {
    return std::array{1.0f, 1 / l, 1.0f};
  });
  with_weights(variant_of(c, "combine-without-max", {"same"}), [](float, float l, float, int) {
    return std::array{1.0f, 1.0f, l};
  });
  with_weights(variant_of(c, "combine-max-only", {"same"}), [](float m, float l, float top, int) {
    return std::array{std::exp(m - top), 1 / l, 1.0f};
  });
  with_weights(variant_of(c, "combine-counts-l-twice", {"sum of o"}),
               [](float m, float l, float top, int) {
                 return std::array{std::exp(m - top), l, l};
               });
  with_weights(variant_of(c, "combine-lacks-l", {"same"}), [](float m, float, float top, int) {
    return std::array{std::exp(m - top), 1.0f, 1.0f};
  });
  with_weights(variant_of(c, "split-dropped", {"split = 1", "all"}),
               [](float m, float l, float top, int n) {
                 return std::array{n == 1 ? 0 : std::exp(m - top), 1.0f, l};
               });
  check(c, variant_of(c, "partials-narrow", {"fp16", "of = o)"}),
        [](FloatKernel& x) { x.narrow_partials = true; });
  check(c, variant_of(c, "sink-counted", {"n = 2"}), [](FloatKernel& x) { x.more_l = 2; });
  check(c, variant_of(c, "l-missing"),
        [](FloatKernel& x) { x.finish = [](float a, float) { return a; }; });
  check(c, variant_of(c, "l-twice"),
        [](FloatKernel& x) { x.finish = [](float a, float l) { return a / l / l; }; });
  check(c, variant_of(c, "gain").at(32),
        [](FloatKernel& x) { x.finish = [](float a, float l) { return a / l * 32; }; });
  check(c, variant_of(c, "l-times-n", {"n = 8"}), [](FloatKernel& x) {
    x.finish = [](float a, float l) { return a / (8 * l); };
    x.lse = [](float m, float l) { return m + std::log(8 * l); };
  });
  check(c, variant_of(c, "lse-form", {"in base 2"}), [](FloatKernel& x) {
    x.lse = [](float m, float l) { return m * 1.44269504f + std::log2(l); };
  });
}

}  // namespace
}  // namespace attn_diag::reference

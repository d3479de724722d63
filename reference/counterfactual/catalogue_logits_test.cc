// Logits and inputs: each hypothesis against its formula, spelled out.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

Vec scores_with(const Formula& f, const std::function<double(int j)>& score) {
  Vec s;
  for (int j = 0; j < f.keys(); ++j) s.push_back(f.sees(f.row.query, j) ? score(j) : -kInf);
  return s;
}

TEST_CASE("temperature: softmax(kappa S) V") {
  const testing::Case c = make_case({.mask = kCausal});
  const Variant variant = variant_of(c, "temperature");
  REQUIRE(variant.free.has_value());
  for (const double kappa : {0.25, 0.6931, 4.0})
    check_output(c, variant.at(kappa),
                 [&](const Formula& f) { return f.attend(times(kappa, f.scores())); });
  bool missing = false;
  for (const ParameterValue& named : variant.free->named)
    missing = missing || (std::fabs(named.value - 4) < 1e-6 &&
                          named.named.find("missing") != std::string::npos);
  CHECK(missing);  // 1 / softmax_scale = sqrt(16)
}

TEST_CASE("columns-missing: q.k over the first columns") {
  const testing::Case c = make_case({});
  check_output(c, variant_of(c, "columns-missing", {"columns = 8", "first"}), [](const Formula& f) {
    return f.attend(scores_with(f, [&](int j) {
      double s = 0;
      for (int d = 0; d < 8; ++d) s += f.q(f.row.query, d) * f.k(j, d);
      return f.scale() * s;
    }));
  });
}

TEST_CASE("columns-of-next-row: q.k reaches into the rows that follow") {
  const testing::Case c = make_case({.head_dim = 12});
  check_output(c, variant_of(c, "columns-of-next-row", {"columns = 16"}), [](const Formula& f) {
    const int i = f.row.query;
    const Problem& p = f.c.problem;
    // The last row of a head is followed by the first of the next; of all heads, by nothing.
    const bool q_ends = f.row.batch == p.batch - 1 && f.row.head == p.heads - 1 && i == 39;
    const bool k_ends = f.row.batch == p.batch - 1 && f.row.head / f.group() == p.kv_heads - 1;
    if (q_ends || k_ends) return Vec(16, NAN);
    const auto next_q = [&](int d) {
      if (i < 39) return f.q(i + 1, d);
      const int head = f.row.head + 1;
      return element(f.c.q, p, 4, 40, 12, f.row.batch + head / 4, head % 4, 0, d);
    };
    const auto next_k = [&](int j, int d) {
      if (j < 39) return f.k(j + 1, d);
      const int head = f.row.head / f.group() + 1;
      return f.k_of(f.row.batch + head / 2, head % 2, 0, d);
    };
    return f.attend(scores_with(f, [&](int j) {
      double s = f.dot(i, j);
      for (int d = 0; d < 4; ++d) s += next_q(d) * next_k(j, d);
      return f.scale() * s;
    }));
  });
}

TEST_CASE("scores-fragment: q.k of the element that took the place, masked where it is") {
  const testing::Case c = make_case({.seqlen_k = 37, .mask = kCausal});
  check_output(c, variant_of(c, "scores-fragment", {"[r + 8]"}), [](const Formula& f) {
    const int i = f.row.query;
    return f.attend(scores_with(f, [&](int j) {
      const bool moves = (i % 16 < 8) != (j % 16 < 8);
      const int row = moves ? i ^ 8 : i, key = moves ? j ^ 8 : j;
      return row < 40 && key < 37 ? f.scale() * f.dot(row, key) : 0;
    }));
  });
}

double to_bf16(double x) {
  const double quantum = std::exp2(std::floor(std::log2(std::fabs(x))) - 7);
  return std::nearbyint(x / quantum) * quantum;
}

TEST_CASE("scores-narrow: bf16 keeps eight bits of q.k") {
  const testing::Case c = make_case({});
  const auto rounded = [](const Formula& f) {
    return f.attend(
        scores_with(f, [&](int j) { return f.scale() * to_bf16(f.dot(f.row.query, j)); }));
  };
  check_rounded_output(c, variant_of(c, "scores-narrow", {"bf16", "every = 0"}), rounded);
}

TEST_CASE("scores-kept-narrow: bf16 keeps eight bits of S, and lse is of these") {
  // A scale that is no power of two.
  const testing::Case c = make_case({.head_dim = 24, .mask = kCausal});
  const auto scores = [](const Formula& f) {
    return scores_with(f, [&](int j) { return to_bf16(f.scale() * f.dot(f.row.query, j)); });
  };
  const Variant variant = variant_of(c, "scores-kept-narrow", {"bf16"});
  check_rounded_output(c, variant, [&](const Formula& f) { return f.attend(scores(f)); });
  const RowIndex row{0, 0, 5};
  const Formula f{c, row};
  const Vec s = scores(f);
  CHECK(std::fabs(predicted(c, row, variant.deviation).lse - largest(s) -
                  std::log(total(exps(s, largest(s))))) < 1e-9);
}

TEST_CASE("bias and softcap: factor, order, form") {
  const testing::Case c = make_case({.batch = 1, .mask = kCausal});
  Extras extras;
  extras.softcap = 2;
  for (int i = 0; i < 40 * 40; ++i) extras.bias.push_back(static_cast<float>(std::sin(i * 0.7)));
  const reference::PredictionInputs data(c.problem, c.geometry, {}, c.inputs(), extras);
  const auto bias = [&](int i, int j) {
    return static_cast<double>(extras.bias[static_cast<std::size_t>(i * 40 + j)]);
  };
  const auto cap = [](double s) { return 2 * std::tanh(s / 2); };
  const auto check = [&](const Deviation& deviation,
                         const std::function<double(double s, double bias)>& score,
                         double masked = -kInf, double times_bias = 0) {
    for (const std::int32_t query : {0, 7, 20, 39}) {
      const RowIndex row{0, 3, query};
      const Formula f{c, row};
      Vec s;
      for (int j = 0; j < 40; ++j)
        s.push_back(f.sees(query, j)
                        ? score(f.scale() * f.dot(query, j), bias(query, j))
                        : masked + (times_bias != 0 ? times_bias * bias(query, j) : 0));
      const Vec should = f.attend(s);
      Prediction out;
      predict(data, std::span(&row, 1), deviation, tensor_bit(Tensor::kO), out);
      for (std::size_t d = 0; d < should.size(); ++d)
        REQUIRE(std::fabs(out[Tensor::kO].value[d] - should[d]) < 1e-10);
    }
  };
  const auto variants = [&](const char* id) { return find_hypothesis(id)->variants(data); };
  check({}, [&](double s, double b) { return cap(s) + b; });
  check(variants("bias-factor").at(0).at(0.5).deviation,
        [&](double s, double b) { return cap(s) + 0.5 * b; });
  check(variants("bias-before-cap").at(0).deviation,
        [&](double s, double b) { return cap(s + b); });
  check(variants("softcap-missing").at(0).deviation, [&](double s, double b) { return s + b; });
  check(variants("softcap-formula").at(0).deviation,
        [&](double s, double b) { return s * std::tanh(s) + b; });
  check(variants("softcap-formula").at(1).deviation,
        [&](double s, double b) { return std::tanh(s / 2) + b; });
  check(variants("softcap-formula").at(2).deviation,
        [&](double s, double b) { return s * std::tanh(s / 2) + b; });
  const auto capped = [&](double s, double b) { return cap(s) + b; };
  check(variants("softcap-after-mask").at(0).deviation, capped, -2);
  CHECK(variants("softcap-after-mask").at(2).label() == "softcap-after-mask(masked = -c + bias)");
  check(variants("softcap-after-mask").at(2).deviation, capped, -2, 1);
  // 40 keys in tiles of 16: 8 keys of zeros, each with score -2.
  CHECK(variants("softcap-after-mask").back().deviation.combine.sinks ==
        Approx(8 * std::exp(-2.0)));
}

TEST_CASE("a bias of the wrong size is refused in words") {
  const testing::Case c = make_case({});
  Extras extras;
  extras.bias.resize(3);
  std::string message;
  try {
    const reference::PredictionInputs data(c.problem, c.geometry, {}, c.inputs(), extras);
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  CHECK(message.find("1600 elements, found 3") != message.npos);
}

}  // namespace
}  // namespace attn_diag::reference

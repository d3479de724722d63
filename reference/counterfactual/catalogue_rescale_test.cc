// Alphas of another power or tile, other frames and types, shared tiles, and what is read or written elsewhere:
// each hypothesis against its formula, spelled out.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"
#include "reference/testing/float_types.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

struct State {
  double m = -kInf, l = 0, last_alpha = 0;
  Vec a = Vec(16, 0.0);
};

// The online softmax of a row, with what `step` makes of l and a.
using Step = std::function<void(State&, const Part&, double m, double alpha, double beta)>;
Vec online(const Formula& f, const Step& step) {
  State x;
  for (int t = 0; t < f.tiles(); ++t) {
    const Part part = tile(f, t);
    const double m = std::max(x.m, part.m);
    step(x, part, m, factor(x.m, m), factor(part.m, m));
    x.m = m;
  }
  return times(1 / x.l, x.a);
}

TEST_CASE("alpha-power: a power of alpha, of one sum or of both") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  const Variant of_o = variant_of(c, "alpha-power", {"of = o"}).at(2);
  CHECK(of_o.label() == "alpha-power(of = o, p = 2)");
  check_output(c, of_o, [](const Formula& f) {
    return online(f, [](State& x, const Part& p, double, double alpha, double beta) {
      x.l = alpha * x.l + beta * p.l;
      x.a = plus(times(alpha * alpha, x.a), times(beta, p.a));
    });
  });
  check_output(c, variant_of(c, "alpha-power", {"l and o"}).at(0.7), [](const Formula& f) {
    return online(f, [](State& x, const Part& p, double, double alpha, double beta) {
      x.l = std::pow(alpha, 0.7) * x.l + beta * p.l;
      x.a = plus(times(std::pow(alpha, 0.7), x.a), times(beta, p.a));
    });
  });
}

TEST_CASE("alpha-late: the alpha of the tile before, which the first may have or not") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  for (const double first : {0.0, 1.0})
    check_output(c, variant_of(c, "alpha-late", {"of = o", first > 0 ? "= 1" : "= 0", "all"}),
                 [&](const Formula& f) {
                   return online(f, [&](State& x, const Part& p, double, double a, double beta) {
                     x.l = a * x.l + beta * p.l;
                     x.a = plus(times(x.last_alpha, x.a), times(beta, p.a));
                     x.last_alpha = x.m == -kInf ? first : a;
                   });
                 });
}

TEST_CASE("probs-in-previous-frame: P is relative to the max before the tile") {
  const testing::Case c = make_case({.block_n = 8});
  check_output(c, variant_of(c, "probs-in-previous-frame", {"of = o"}), [](const Formula& f) {
    return online(f, [](State& x, const Part& p, double, double alpha, double beta) {
      x.l = alpha * x.l + beta * p.l;
      const double to_previous = x.m == -kInf ? 1 : std::exp(p.m - x.m);
      x.a = plus(times(alpha, x.a), times(to_previous, p.a));
    });
  });
}

TEST_CASE("sum-narrow: l has the bits of bf16 after every tile") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  check_rounded_output(c, variant_of(c, "sum-narrow", {"bf16"}), [](const Formula& f) {
    return online(f, [](State& x, const Part& p, double, double alpha, double beta) {
      x.l = testing::round_to(DType::kBf16, alpha * x.l + beta * p.l);
      x.a = plus(times(alpha, x.a), times(beta, p.a));
    });
  });
}

TEST_CASE("splits-share-tiles: tiles at the ends of splits count twice or not at all") {
  const testing::Case c = make_case({.block_n = 8, .splits = 2});  // 5 tiles: 3 and 2
  const auto counting = [](const Formula& f, const std::vector<double>& times_counted) {
    const Vec s = f.scores();
    Vec p = exps(s, largest(s));
    for (std::size_t j = 0; j < p.size(); ++j) p[j] *= times_counted[j / 8];
    return times(1 / total(p), f.weighted(p));
  };
  check_output(c, variant_of(c, "splits-share-tiles", {"next split"}), [&](const Formula& f) {
    return counting(f, {1, 1, 1, 2, 1});
  });
  check_output(c, variant_of(c, "splits-share-tiles", {"split before"}), [&](const Formula& f) {
    return counting(f, {1, 1, 2, 1, 1});
  });
  check_output(c, variant_of(c, "splits-share-tiles", {"left out"}), [&](const Formula& f) {
    return counting(f, {1, 1, 0, 1, 1});
  });
}

TEST_CASE("rows-shifted and columns-shifted: neighbours in memory") {
  const testing::Case c = make_case({});  // [2][2][40][16]
  const auto v_at = [](const Formula& f, int shift, int j, int d) {
    const int flat = ((f.row.batch * 2 + f.row.head / 2) * 40 + j) * 16 + d - shift;
    if (flat < 0 || flat >= 2 * 2 * 40 * 16) return kNan;
    Formula other = f;
    other.row.batch = flat / (2 * 40 * 16);
    return other.v_of(other.row.batch, flat / (40 * 16) % 2, flat / 16 % 40, flat % 16);
  };
  const auto shifted = [&](const Formula& f, int shift) {
    // A row of V of which one element is not known is not known.
    Vec o = f.attend(f.scores(), [&](int j, int d) { return v_at(f, shift, j, d); });
    if (std::any_of(o.begin(), o.end(), [](double x) { return std::isnan(x); }))
      std::fill(o.begin(), o.end(), kNan);
    return o;
  };
  check_output(c, variant_of(c, "rows-shifted", {"operand = v", "rows = 1,", "is there"}),
               [&](const Formula& f) { return shifted(f, 16); });
  check_output(c, variant_of(c, "rows-shifted", {"operand = v", "rows = -1,", "is there"}),
               [&](const Formula& f) { return shifted(f, -16); });
  check_output(c, variant_of(c, "columns-shifted", {"operand = v", "columns = -2,", "is there"}),
               [&](const Formula& f) { return shifted(f, -2); });
  check_output(c, variant_of(c, "rows-shifted", {"operand = v", "rows = 2,", "again"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return f.v(std::max(j - 2, 0), d); });
               });
  check_output(c, variant_of(c, "rows-shifted", {"operand = k,", "rows = -1,", "zeros"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) { return j < 39 ? f.k(j + 1, d) : 0; });
               });
  check_output(c, variant_of(c, "columns-shifted", {"operand = k", "columns = 1,", "zeros"}),
               [](const Formula& f) {
                 return with_k(f, [&](int j, int d) { return d > 0 ? f.k(j, d - 1) : 0; });
               });
  check_output(c, variant_of(c, "columns-shifted", {"operand = v", "columns = -4,", "again"}),
               [](const Formula& f) {
                 return with_v(f, [&](int j, int d) { return f.v(j, std::min(d + 4, 15)); });
               });
}

TEST_CASE("probs-stale: P of the tile before, V of this one") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  check_output(c, variant_of(c, "probs-stale", {"all"}), [](const Formula& f) {
    const Vec s = f.scores();
    double m = -kInf, l = 0;
    Vec a(16, 0.0), before;
    for (int t = 0; t < f.tiles(); ++t) {
      const Vec of_tile(s.begin() + t * 8, s.begin() + t * 8 + 8);
      const double was = m;
      m = std::max(m, largest(of_tile));
      const Vec p = exps(of_tile, m);
      l = factor(was, m) * l + total(p);
      Vec weights(static_cast<std::size_t>(f.keys()), 0.0);
      for (std::size_t j = 0; j < 8; ++j)
        weights[static_cast<std::size_t>(t) * 8 + j] = t == 0 ? p[j] : before[j];
      a = plus(times(factor(was, m), a), f.weighted(weights));
      before = p;
    }
    return times(1 / l, a);
  });
}

TEST_CASE("the last columns alone: of q.k, and of o") {
  const testing::Case c = make_case({});
  check_output(c, variant_of(c, "columns-missing", {"columns = 8", "last"}), [](const Formula& f) {
    Vec s;
    for (int j = 0; j < f.keys(); ++j) {
      double dot = 0;
      for (int d = 8; d < 16; ++d) dot += f.q(f.row.query, d) * f.k(j, d);
      s.push_back(f.scale() * dot);
    }
    return f.attend(s);
  });
  check_output(c, variant_of(c, "output-columns", {"columns = 8", "last", "zero"}),
               [](const Formula& f) {
                 Vec o = f.attend(f.scores());
                 std::fill_n(o.begin(), 8, 0.0);
                 return o;
               });
}

TEST_CASE("scaled-query-narrow: q times the scale has the bits of bf16") {
  testing::Case c = make_case({});
  c.problem.softmax_scale = 0.3f;
  check_rounded_output(c, variant_of(c, "scaled-query-narrow", {"bf16"}), [](const Formula& f) {
    Vec s;
    for (int j = 0; j < f.keys(); ++j) {
      double dot = 0;
      for (int d = 0; d < 16; ++d)
        dot += testing::round_to(DType::kBf16, f.q(f.row.query, d) * f.scale()) * f.k(j, d);
      s.push_back(dot);
    }
    return f.attend(s);
  });
}

TEST_CASE("output-narrow: o to nearest or cut off, and lse") {
  const testing::Case c = make_case({});
  check_rounded_output(c, variant_of(c, "output-narrow", {"of = o", "= bf16)"}),
                       [](const Formula& f) {
                         Vec o = f.attend(f.scores());
                         for (double& x : o) x = testing::round_to(DType::kBf16, x);
                         return o;
                       });
  check_rounded_output(
      c, variant_of(c, "output-narrow", {"of = o", "bf16, cut off"}), [](const Formula& f) {
        Vec o = f.attend(f.scores());
        // bf16 is the upper half of fp32.
        for (double& x : o)
          x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) &
                                   0xffff0000u);
        return o;
      });
  const Variant lse = variant_of(c, "output-narrow", {"of = lse", "bf16"});
  const RowIndex row{1, 2, 30};
  const double right = predicted(c, row, {}).lse, is = predicted(c, row, lse.deviation).lse;
  CHECK(is == testing::round_to(DType::kBf16, right));
  CHECK(is != right);
}

TEST_CASE("output-rows-shifted and lse-of-another: rows in others' places") {
  const testing::Case c = make_case({.mask = kCausal});
  check_output(c, variant_of(c, "output-rows-shifted", {"rows = 1)"}), [](const Formula& f) {
    return f.row.query == 0 ? Vec(16, kNan) : f.attend(f.scores(f.row.query - 1));
  });
  const auto lse_of = [&](int batch, int head, int query) {
    const Vec s = Formula{c, {batch, head, query}}.scores();
    return largest(s) + std::log(total(exps(s, largest(s))));
  };
  check_lse(c, variant_of(c, "lse-of-another", {"order"}), [&](const Formula& f) {
    const int flat = f.row.head * 40 + f.row.query;
    return lse_of(f.row.batch, flat % 4, flat / 4);
  });
  check_lse(c, variant_of(c, "lse-of-another", {"before"}), [&](const Formula& f) {
    const int flat = (f.row.batch * 4 + f.row.head) * 40 + f.row.query - 1;
    return flat < 0 ? 0 /* nobody knows */ : lse_of(flat / 160, flat / 40 % 4, flat % 40);
  });
}

TEST_CASE("partial-of-another: the next head, batch and query") {
  const testing::Case c = make_case({.block_n = 8, .splits = 2, .mask = kCausal});
  const auto row_of = [](const Formula& f, int batch, int head, int query) {
    const Formula other{f.c, {batch, head, query}};
    return other.attend(other.scores());
  };
  check_output(
      c, variant_of(c, "partial-of-another", {"the next head", "m, l and o"}),
      [&](const Formula& f) { return row_of(f, f.row.batch, (f.row.head + 1) % 4, f.row.query); });
  check_output(
      c, variant_of(c, "partial-of-another", {"the next query", "m, l and o"}),
      [&](const Formula& f) { return row_of(f, f.row.batch, f.row.head, (f.row.query + 1) % 40); });
}

}  // namespace
}  // namespace attn_diag::reference

// From tile to tile: each hypothesis against its formula, spelled out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/counterfactual/testing/formula.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

struct State {
  double m = -kInf, l = 0;
  Vec a = Vec(16, 0.0);
};

// The online softmax of a row; `step` gets the state, the tile and its number.
Vec online(const Formula& f, const std::function<void(State&, const Part&, int t)>& step,
           bool divide = true) {
  State state;
  for (int t = 0; t < f.tiles(); ++t) step(state, tile(f, t), t);
  return divide ? times(1 / state.l, state.a) : state.a;
}

// The right step but for the factors on l and on o.
void advance(State& x, const Part& part, double alpha_l, double alpha_o) {
  const double m = std::max(x.m, part.m), beta = factor(part.m, m);
  x.l = alpha_l * x.l + beta * part.l;
  x.a = plus(times(alpha_o, x.a), times(beta, part.a));
  x.m = m;
}

TEST_CASE("alpha missing, inverted, zero, on one tile") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  const auto alpha = [](const State& x, const Part& part) {
    return factor(x.m, std::max(x.m, part.m));
  };
  check_output(c, variant_of(c, "alpha-missing-l"), [&](const Formula& f) {
    return online(f, [&](State& x, const Part& p, int) { advance(x, p, 1, alpha(x, p)); });
  });
  check_output(c, variant_of(c, "alpha-missing-o"), [&](const Formula& f) {
    return online(f, [&](State& x, const Part& p, int) { advance(x, p, alpha(x, p), 1); });
  });
  check_output(c, variant_of(c, "alpha-missing"), [&](const Formula& f) {
    return online(f, [&](State& x, const Part& p, int) { advance(x, p, 1, 1); });
  });
  const auto over = [&](const State& x, const Part& p) {
    return alpha(x, p) == 0 ? 0 : 1 / alpha(x, p);
  };
  check_output(c, variant_of(c, "alpha-inverted", {"l and o"}), [&](const Formula& f) {
    return online(f, [&](State& x, const Part& p, int) { advance(x, p, over(x, p), over(x, p)); });
  });
  check_output(c, variant_of(c, "alpha-inverted", {"of = l)"}), [&](const Formula& f) {
    return online(f, [&](State& x, const Part& p, int) { advance(x, p, over(x, p), alpha(x, p)); });
  });
  check_output(c, variant_of(c, "state-reset", {"of = o", "all"}), [&](const Formula& f) {
    return online(f, [&](State& x, const Part& p, int) { advance(x, p, alpha(x, p), 0); });
  });
  check_output(c, variant_of(c, "alpha-missing-on-one-tile", {"tile = 2,", "of = o"}),
               [&](const Formula& f) {
                 return online(f, [&](State& x, const Part& p, int t) {
                   advance(x, p, alpha(x, p), t == 2 ? 1 : alpha(x, p));
                 });
               });
  check_output(c, variant_of(c, "alpha-missing-on-one-tile", {"all but", "of = o", "visible"}),
               [&](const Formula& f) {
                 return online(f, [&](State& x, const Part& p, int t) {
                   advance(x, p, alpha(x, p), t == f.row.query / 16 * 2 + 1 ? alpha(x, p) : 1);
                 });
               });
  check_output(c, variant_of(c, "alpha-times-l", {"all"}), [&](const Formula& f) {
    return online(
        f, [&](State& x, const Part& p, int) { advance(x, p, alpha(x, p), alpha(x, p) * x.l); });
  });
  check_output(c, variant_of(c, "rescale-skipped", {"below = 2,", "l and o", "of the sums"}),
               [&](const Formula& f) {
                 return online(f, [&](State& x, const Part& p, int) {
                   const bool skip = x.m > -kInf && p.m - x.m < 2;
                   advance(x, p, skip ? 1 : alpha(x, p), skip ? 1 : alpha(x, p));
                 });
               });
  check_output(c, variant_of(c, "columns-not-carried", {"n = 4", "all"}), [&](const Formula& f) {
    const Vec right = f.attend(f.scores());
    Vec o = online(f, [&](State& x, const Part& p, int) { advance(x, p, alpha(x, p), 0); });
    for (std::size_t d = 0; d < 16; d += 4) o[d] = right[d];
    return o;
  });
}

TEST_CASE(
    "rescale-skipped-max-kept: P is relative to the new max or the old, the state to the old") {
  testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  bool old_probs = false;
  const auto kept = [&](State& x, const Part& p, int) {
    const double before = x.m, m = std::max(before, p.m);
    const bool keep = before > -kInf && p.m - before <= 2;
    const double alpha = keep ? 1 : factor(before, m);
    const double beta = factor(p.m, before > -kInf && old_probs ? before : m);
    x.l = alpha * x.l + beta * p.l;
    x.a = plus(times(alpha, x.a), times(beta, p.a));
    x.m = keep ? before : m;
  };
  for (const bool old : {false, true})
    for (const Frame frame : {Frame::kTile, Frame::kRunning}) {
      old_probs = old;
      c.geometry.frame = frame;
      const Variant variant = variant_of(
          c, old ? "probs-in-previous-frame" : "rescale-skipped-max-kept", {"below = 2)"});
      check_output(c, variant, [&](const Formula& f) { return online(f, kept); });
      check_lse(c, variant, [&](const Formula& f) {
        State x;
        for (int t = 0; t < f.tiles(); ++t) kept(x, tile(f, t), t);
        return x.m + std::log(x.l);
      });
    }
}

TEST_CASE("alpha-missing-on-one-tile: of the sequence, which is in one split only") {
  const testing::Case c = make_case({.seqlen_k = 64, .block_n = 8, .splits = 2});
  check_output(c, variant_of(c, "alpha-missing-on-one-tile", {"5 of the sequence", "of = o"}),
               [](const Formula& f) {
                 std::vector<State> splits(2);
                 for (int t = 0; t < 8; ++t) {
                   State& x = splits[static_cast<std::size_t>(t / 4)];
                   const Part p = tile(f, t);
                   const double alpha = factor(x.m, std::max(x.m, p.m));
                   advance(x, p, alpha, t == 5 ? 1 : alpha);
                 }
                 const double m = std::max(splits[0].m, splits[1].m);
                 const double l =
                     splits[0].l * factor(splits[0].m, m) + splits[1].l * factor(splits[1].m, m);
                 return times(1 / l, plus(times(factor(splits[0].m, m), splits[0].a),
                                          times(factor(splits[1].m, m), splits[1].a)));
               });
}

TEST_CASE("only the visited tiles reset the state") {
  const testing::Case c = make_case({.block_m = 8, .block_n = 8, .mask = kCausal});
  check_output(c, variant_of(c, "state-reset", {"l and o", "visible"}), [](const Formula& f) {
    const Part last = tile(f, f.row.query / 8);
    return times(1 / last.l, last.a);
  });
}

TEST_CASE("a split whose l was reset to 0 is left out, or its accumulator stays") {
  const testing::Case c = make_case(
      {.seqlen_q = 16, .seqlen_k = 32, .block_m = 16, .block_n = 8, .splits = 2, .mask = kCausal});
  // The first split's tiles end at 8 and 16; the first 8 rows see nothing of the second tile.
  for (const bool left_out : {true, false})
    check_output(
        c, variant_of(c, "state-reset", {"of = l,", left_out ? "left out" : "merged", "all tiles"}),
        [&](const Formula& f) {
          const Part all = part_of(f, f.row.query, 0, 16), last = tile(f, 1);
          if (last.l > 0) return times(1 / (last.l * factor(last.m, all.m)), all.a);
          return left_out ? Vec(16, 0.0) : times(kInf, all.a);
        });
}

TEST_CASE("order, frames and divisions within the loop") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto in_step =
      [](const Formula& f,
         const std::function<void(State&, const Part&, double, double, double)>& step,
         bool divide = true) {
        return online(
            f,
            [&](State& x, const Part& p, int) {
              const double m = std::max(x.m, p.m);
              const double alpha = factor(x.m, m), beta = factor(p.m, m);
              step(x, p, m, alpha, beta);
              x.m = m;
            },
            divide);
      };
  check_output(c, variant_of(c, "rescale-skipped", {"below = 2,", "l and o", "of P"}),
               [&](const Formula& f) {
                 return in_step(f,
                                [](State& x, const Part& p, double m, double alpha, double beta) {
                                  if (x.m > -kInf && m - x.m < 2) beta *= std::exp(m - x.m);
                                  x.l = alpha * x.l + beta * p.l;
                                  x.a = plus(times(alpha, x.a), times(beta, p.a));
                                });
               });
  check_output(c, variant_of(c, "rescale-skipped", {"below = 1,", "l and o", "of both"}),
               [&](const Formula& f) {
                 return in_step(f,
                                [](State& x, const Part& p, double m, double alpha, double beta) {
                                  const bool stays = x.m > -kInf && m - x.m < 1;
                                  if (stays) beta *= std::exp(m - x.m);
                                  if (stays) alpha = 1;
                                  x.l = alpha * x.l + beta * p.l;
                                  x.a = plus(times(alpha, x.a), times(beta, p.a));
                                });
               });
  check_output(c, variant_of(c, "alpha-after-product", {"of = o", "first = 0"}),
               [&](const Formula& f) {
                 return in_step(f, [](State& x, const Part& p, double, double alpha, double beta) {
                   x.l = alpha * x.l + beta * p.l;
                   x.a = times(alpha, plus(x.a, times(beta, p.a)));
                 });
               });
  check_output(c, variant_of(c, "alpha-after-product", {"l and o", "first = 1"}),
               [&](const Formula& f) {
                 return in_step(f, [](State& x, const Part& p, double, double alpha, double beta) {
                   if (x.m == -kInf) alpha = 1;
                   x.l = alpha * (x.l + beta * p.l);
                   x.a = times(alpha, plus(x.a, times(beta, p.a)));
                 });
               });
  check_output(c, variant_of(c, "tile-frame", {"of = o", "every tile"}), [&](const Formula& f) {
    return in_step(f, [](State& x, const Part& p, double, double alpha, double beta) {
      x.l = alpha * x.l + beta * p.l;
      x.a = plus(times(alpha, x.a), p.a);
    });
  });
  check_output(c, variant_of(c, "normalised-every-tile", {"tile's l, not"}), [&](const Formula& f) {
    return in_step(
        f,
        [](State& x, const Part& p, double, double alpha, double) {
          // Numerator and denominator are in the same frame, the running one.
          if (p.l > 0) x.a = plus(times(alpha, x.a), times(1 / p.l, p.a));
        },
        false);
  });
  check_output(c, variant_of(c, "normalised-every-tile", {"running l, and", "all"}),
               [&](const Formula& f) {
                 return in_step(f, [](State& x, const Part& p, double, double alpha, double beta) {
                   x.l = alpha * x.l + beta * p.l;
                   x.a = times(1 / x.l, plus(times(alpha, x.a), times(beta, p.a)));
                 });
               });
}

TEST_CASE("normalised-every-tile: after the first tile alone") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  check_output(c, variant_of(c, "normalised-every-tile", {"after the first tile alone"}),
               [&](const Formula& f) {
                 return online(f, [](State& x, const Part& p, int) {
                   const bool first = x.m == -kInf;
                   const double alpha = factor(x.m, std::max(x.m, p.m));
                   advance(x, p, alpha, alpha);
                   if (first) x.a = times(1 / x.l, x.a);
                 });
               });
}

TEST_CASE("tile-frame: on the last tile of the loop, or on all but that") {
  const testing::Case c = make_case({.block_m = 8, .block_n = 8, .mask = kCausal});
  for (const bool last : {true, false})
    check_output(c,
                 variant_of(c, "tile-frame",
                            {"l and o", last ? "on = the last" : "all but the last", "visible"}),
                 [&](const Formula& f) {
                   return online(f, [&](State& x, const Part& p, int t) {
                     const double m = std::max(x.m, p.m), alpha = factor(x.m, m);
                     const bool own = (t == f.row.query / 8) == last;
                     const double beta = own && p.m > -kInf ? 1 : factor(p.m, m);
                     x.l = alpha * x.l + beta * p.l;
                     x.a = plus(times(alpha, x.a), times(beta, p.a));
                     x.m = m;
                   });
                 });
}

TEST_CASE("tile-sum-times-n: of the last tile, of all but the first") {
  const testing::Case c = make_case({.block_m = 8, .block_n = 8, .mask = kCausal});
  const auto check = [&](const std::vector<std::string>& words, double n,
                         const std::function<bool(const Formula&, int t)>& on) {
    check_output(c, variant_of(c, "tile-sum-times-n", words), [&](const Formula& f) {
      return online(f, [&](State& x, Part p, int t) {
        const double alpha = factor(x.m, std::max(x.m, p.m));
        if (on(f, t)) p.l *= n;
        advance(x, p, alpha, alpha);
      });
    });
  };
  check({"n = 32,", "on = the last", "visible"}, 32,
        [](const Formula& f, int t) { return t == f.row.query / 8; });
  check({"n = 4,", "all but the first"}, 4, [](const Formula&, int t) { return t > 0; });
  check({"n = 8,", "on = the first"}, 8, [](const Formula&, int t) { return t == 0; });
  check({"n = 2,", "on = odd"}, 2, [](const Formula&, int t) { return t % 2 == 1; });
}

TEST_CASE("normalised-every-tile: P V of a tile is divided by the l so far") {
  const testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  for (const bool at_end : {false, true})
    check_output(c,
                 variant_of(c, "normalised-every-tile",
                            {"P V alone", at_end ? "by l at the end" : "not at the end"}),
                 [&](const Formula& f) {
                   return online(
                       f,
                       [](State& x, const Part& p, int) {
                         const double m = std::max(x.m, p.m), alpha = factor(x.m, m);
                         const double beta = factor(p.m, m);
                         x.l = alpha * x.l + beta * p.l;
                         x.a = plus(times(alpha, x.a), times(beta / x.l, p.a));
                         x.m = m;
                       },
                       at_end);
                 });
}

TEST_CASE("state of another row") {
  const testing::Case c = make_case({.mask = kCausal});
  // The accumulator of the query tile before stays; nothing rescales it on the first tile.
  const std::function<State(const Formula&, int)> final_state = [&](const Formula& f, int i) {
    State x;
    if (i >= 16) x.a = final_state(f, i - 16).a;
    for (int t = 0; t < 3; ++t) {
      const Part p = part_of(f, i, t * 16, (t + 1) * 16);
      const double alpha = t == 0 ? 1 : factor(x.m, std::max(x.m, p.m));
      advance(x, p, alpha, alpha);
    }
    return x;
  };
  check_output(c,
               variant_of(c, "state-carried-over", {"= the accumulator", "distance = 1", "tiles)"}),
               [&](const Formula& f) {
                 const State x = final_state(f, f.row.query);
                 return times(1 / x.l, x.a);
               });
  // Rows i, i - 16, i - 32 as if they were one.
  for (const int distance : {1, 2})
    check_output(c,
                 variant_of(c, "state-carried-over",
                            {"m, l and", "distance = " + std::to_string(distance), "tiles)"}),
                 [&](const Formula& f) {
                   Vec a(16, 0.0);
                   double l = 0;
                   for (int i = f.row.query; i >= 0; i -= 16 * distance) {
                     const Vec p = exps(f.scores(i), 0);
                     l += total(p);
                     a = plus(a, f.weighted(p));
                   }
                   return times(1 / l, a);
                 });
  // The last tile has 8 rows of 16.
  check_output(c, variant_of(c, "state-carried-over", {"m, l and", "distance = 1", "last first"}),
               [](const Formula& f) {
                 Vec a(16, 0.0);
                 double l = 0;
                 if (f.row.query % 16 >= 8 && f.row.query < 32) return Vec(16, NAN);
                 for (int i = f.row.query; i < 40; i += 16) {
                   const Vec p = exps(f.scores(i), 0);
                   l += total(p);
                   a = plus(a, f.weighted(p));
                 }
                 return times(1 / l, a);
               });
  check_output(c, variant_of(c, "state-carried-over", {"m, l and", "distance = 2", "heads"}),
               [](const Formula& f) {
                 Vec a(16, 0.0);
                 double l = 0;
                 for (int h = f.row.head; h >= 0; h -= 2) {
                   const Formula head{f.c, {f.row.batch, h, f.row.query}};
                   const Vec p = exps(head.scores(), 0);
                   l += total(p);
                   a = plus(a, head.weighted(p));
                 }
                 return times(1 / l, a);
               });
  // m and l of rows i, i - 16, i - 32 go on; the accumulator is the row's own.
  check_output(c, variant_of(c, "state-carried-over", {"= m and l,", "distance = 1", "tiles)"}),
               [](const Formula& f) {
                 double l = 0;
                 for (int i = f.row.query; i >= 0; i -= 16) l += total(exps(f.scores(i), 0));
                 return times(1 / l, f.weighted(exps(f.scores(), 0)));
               });
}

TEST_CASE("accumulator-narrow: eight bits after every tile") {
  const testing::Case c = make_case({.mask = kCausal});
  check_rounded_output(c, variant_of(c, "accumulator-narrow", {"= bf16)"}), [](const Formula& f) {
    return online(f, [](State& x, const Part& p, int) {
      const double alpha = factor(x.m, std::max(x.m, p.m));
      advance(x, p, alpha, alpha);
      for (double& a : x.a) {
        const double quantum = std::exp2(std::floor(std::log2(std::fabs(a))) - 7);
        if (a != 0) a = std::nearbyint(a / quantum) * quantum;
      }
    });
  });
}

}  // namespace
}  // namespace attn_diag::reference

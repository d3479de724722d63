// The merge of splits and the end: each hypothesis against its formula, spelled out.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/counterfactual/testing/formula.h"
#include "reference/counterfactual/unite.h"
#include "reference/testing/catch2_test.h"

namespace attn_diag::reference {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Mask kCausal{MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0};

// Three splits of one tile.
const Shape kSplits{.splits = 3, .mask = kCausal};
std::vector<Part> splits_of(const Formula& f) {
  std::vector<Part> parts;
  for (int n = 0; n < 3; ++n) parts.push_back(tile(f, n));
  return parts;
}
// sum w A x / sum w y over splits that have seen something, or all.
Vec merged(const Formula& f,
           const std::function<std::array<double, 3>(const Part&, double m, int n)>& weights) {
  const std::vector<Part> parts = splits_of(f);
  double m = -kInf, y = 0;
  for (const Part& part : parts) m = std::max(m, part.m);
  Vec o(16, 0.0);
  for (int n = 0; n < 3; ++n) {
    const Part& part = parts[static_cast<std::size_t>(n)];
    const auto [w, of_a, of_l] = weights(part, m, n);
    if (part.l > 0) o = plus(o, times(w * of_a, part.a));
    y += w * of_l;
  }
  return times(1 / y, o);
}

TEST_CASE("the merge of splits with other weights") {
  const testing::Case c = make_case(kSplits);
  const auto check = [&](const Variant& variant,
                         const std::function<std::array<double, 3>(const Part&, double, int)>& w) {
    check_output(c, variant, [&](const Formula& f) { return merged(f, w); });
  };
  const auto w = [](const Part& part, double m) { return factor(part.m, m); };
  check(variant_of(c, "combine-lse-base", {"right", "below"}).at(0.7),
        [&](const Part& p, double m, int) {
          const double weight = p.l > 0 ? std::pow(p.l * w(p, m), 0.7) : 0;
          return std::array{weight, 1 / p.l, 1.0};
        });
  check(variant_of(c, "combine-mean", {"right", "= counted"}), [](const Part& p, double, int) {
    return std::array{1.0, 1 / p.l, 1.0};
  });
  check(variant_of(c, "combine-without-max", {"right"}), [](const Part& p, double, int) {
    return std::array{1.0, 1.0, p.l};
  });
  check(variant_of(c, "combine-max-only", {"right"}), [&](const Part& p, double m, int) {
    return std::array{w(p, m), 1 / p.l, 1.0};
  });
  check(variant_of(c, "combine-counts-l-twice", {"sum of o"}), [&](const Part& p, double m, int) {
    return std::array{w(p, m), p.l, p.l};
  });
  check(variant_of(c, "combine-counts-l-twice", {"both", "right"}),
        [&](const Part& p, double m, int) {
          return std::array{w(p, m), p.l, p.l * p.l};
        });
  check(variant_of(c, "combine-counts-l-twice", {"sum of l", "right"}),
        [&](const Part& p, double m, int) {
          return std::array{w(p, m), 1.0, p.l * p.l};
        });
  check(variant_of(c, "combine-lacks-l", {"right"}), [&](const Part& p, double m, int) {
    return std::array{w(p, m), 1.0, 1.0};
  });
  const reference::PredictionInputs data(c.problem, c.geometry, {.output = DType::kFp32},
                                         c.inputs());
  check(find_hypothesis("combine-divides-by-l-twice")->variants(data).front(),
        [&](const Part& p, double m, int) {
          return std::array{w(p, m), 1 / p.l, p.l};
        });
}

TEST_CASE("the merge with other weights of the last split alone") {
  const testing::Case c = make_case(kSplits);
  const auto check = [&](const char* id, const auto& w) {
    check_output(c, variant_of(c, id, {"the last alone"}),
                 [&](const Formula& f) { return merged(f, w); });
  };
  check("combine-divides-by-l-twice", [](const Part& p, double m, int n) {
    return std::array{factor(p.m, m), n == 2 ? 1 / p.l : 1.0, p.l};
  });
  // Where the split has no keys for the row, nothing is added.
  check("combine-without-max", [](const Part& p, double m, int n) {
    return std::array{n == 2 && p.l > 0 ? 1.0 : factor(p.m, m), 1.0, p.l};
  });
}

TEST_CASE("partials-narrow: m of a split in bf16, its l and o relative to what it was") {
  const testing::Case c = make_case({.splits = 3});
  const auto narrow = [](double x) {
    const double quantum = std::exp2(std::floor(std::log2(std::fabs(x))) - 7);
    return x == 0 ? 0 : std::nearbyint(x / quantum) * quantum;
  };
  check_rounded_output(c, variant_of(c, "partials-narrow", {"bf16", "of = m)"}),
                       [&](const Formula& f) {
                         return merged(f, [&](const Part& p, double m, int) {
                           return std::array{std::exp(narrow(p.m) - m), 1.0, p.l};
                         });
                       });
}

TEST_CASE("the lse of some splits is of another base") {
  const testing::Case c = make_case(kSplits);
  const auto check = [&](const char* splits, const char* base, double kappa,
                         const std::function<bool(int)>& other) {
    const Variant variant =
        variant_of(c, "combine-lse-base", {std::string(splits) + ", lse = of the same sums", base});
    const auto weight = [=](const Part& p, int n) {
      return p.l > 0 ? std::exp((other(n) ? kappa : 1.0) * (p.m + std::log(p.l))) : 0;
    };
    check_output(c, variant, [&](const Formula& f) {
      return merged(f, [&](const Part& p, double, int n) {
        return std::array{weight(p, n), 1 / p.l, 1.0};
      });
    });
    check_lse(c, variant, [&](const Formula& f) {
      double sum = 0;
      for (int n = 0; n < 3; ++n) sum += weight(tile(f, n), n);
      return std::log(sum);
    });
  };
  check("splits = 0", "log2 e", 1 / std::log(2.0), [](int n) { return n == 0; });
  check("splits = 1", "ln 2", std::log(2.0), [](int n) { return n == 1; });
  check("splits = 1, 2", "log2 e", 1 / std::log(2.0), [](int n) { return n != 0; });
  check("splits = 0, 1", "ln 2", std::log(2.0), [](int n) { return n != 2; });
}

TEST_CASE("the merge sums l over lanes that have a split each, and does not share the sum") {
  const testing::Case c = make_case({.head_dim_v = 40, .splits = 3});
  const auto check = [&](const std::vector<std::string>& words,
                         const std::function<bool(int lane, int n)>& has) {
    const Variant variant = variant_of(c, "lane-sum-not-shared", words);
    check_output(c, variant, [&](const Formula& f) {
      const std::vector<Part> parts = splits_of(f);
      const Part all = part_of(f, f.row.query, 0, 40);
      Vec o = all.a;
      for (int d = 0; d < 40; ++d) {
        double l = 0;
        for (int n = 0; n < 3; ++n) {
          const Part& part = parts[static_cast<std::size_t>(n)];
          if (has(d % 32, n)) l += factor(part.m, all.m) * part.l;
        }
        double& x = o[static_cast<std::size_t>(d)];
        x = l > 0 ? x / l : 0;
      }
      return o;
    });
  };
  check({"down", "its split", "o = 0"}, [](int lane, int n) { return n >= lane; });
  check({"none", "its split", "o = 0"}, [](int lane, int n) { return n == lane; });
  check({"only 2, 4, 8, 16", "its split", "o = 0"},
        [](int lane, int n) { return n % 2 == lane % 2; });
}

TEST_CASE("lse of a merge with other weights") {
  const testing::Case c = make_case({.splits = 3});
  const auto largest_lse = [](const Formula& f) {
    double most = -kInf;
    for (const Part& p : splits_of(f)) most = std::max(most, p.m + std::log(p.l));
    return most;
  };
  const double kappa = std::log(2.0);
  const auto sum = [&](const Formula& f, double in_frame) {
    double of_weights = 0;
    for (const Part& p : splits_of(f))
      of_weights += std::exp(kappa * (p.m + std::log(p.l) - in_frame));
    return of_weights;
  };
  check_lse(c, variant_of(c, "combine-lse-base", {"in that base", "natural lse"}),
            [&](const Formula& f) { return std::log(sum(f, 0)) / kappa; });
  check_lse(c, variant_of(c, "combine-lse-base", {"largest", "natural lse"}),
            [&](const Formula& f) { return largest_lse(f) + std::log(sum(f, largest_lse(f))); });
  check_lse(c, variant_of(c, "combine-lse-base", {"of the sum of the weights", "natural lse"}),
            [&](const Formula& f) { return std::log(sum(f, 0)); });
  // m of all, and l of the weights: the two are not in one frame.
  check_lse(c, variant_of(c, "combine-lse-base", {"of the same sums)", "natural lse"}),
            [&](const Formula& f) {
              const std::vector<Part> parts = splits_of(f);
              const double m = std::max({parts[0].m, parts[1].m, parts[2].m});
              return m + std::log(sum(f, m));
            });
  check_lse(c, variant_of(c, "combine-without-max", {"same"}), [](const Formula& f) {
    const std::vector<Part> parts = splits_of(f);
    return std::max({parts[0].m, parts[1].m, parts[2].m}) +
           std::log(parts[0].l + parts[1].l + parts[2].l);
  });
  check_lse(c, variant_of(c, "combine-mean", {"right"}), [](const Formula& f) {
    const Part all = part_of(f, f.row.query, 0, 40);
    return all.m + std::log(all.l);
  });
}

TEST_CASE("splits that are missing, doubled, alone, exchanged") {
  const testing::Case c = make_case({.splits = 3});
  const auto share = [](const Part& p, double m, double times_n) {
    return std::array{times_n * factor(p.m, m), 1.0, p.l};
  };
  check_output(c, variant_of(c, "split-dropped", {"split = 1", "all"}), [&](const Formula& f) {
    return merged(f, [&](const Part& p, double m, int n) { return share(p, m, n == 1 ? 0 : 1); });
  });
  check_output(c, variant_of(c, "split-doubled", {"split = 0"}), [&](const Formula& f) {
    return merged(f, [&](const Part& p, double m, int n) { return share(p, m, n == 0 ? 2 : 1); });
  });
  check_output(c, variant_of(c, "split-alone", {"split = 2", "merged"}), [&](const Formula& f) {
    return merged(f, [&](const Part& p, double m, int n) { return share(p, m, n == 2 ? 1 : 0); });
  });
  check_output(c, variant_of(c, "partial-of-another", {"next split", "of = o"}),
               [&](const Formula& f) {
                 const std::vector<Part> parts = splits_of(f);
                 const double m = std::max({parts[0].m, parts[1].m, parts[2].m});
                 double l = 0;
                 Vec o(16, 0.0);
                 for (std::size_t n = 0; n < 3; ++n) {
                   l += factor(parts[n].m, m) * parts[n].l;
                   o = plus(o, times(factor(parts[n].m, m), parts[(n + 1) % 3].a));
                 }
                 return times(1 / l, o);
               });
  check_output(c, variant_of(c, "partial-of-another", {"head 0", "m, l and o"}),
               [&](const Formula& f) {
                 const Formula first{f.c, {f.row.batch, 0, f.row.query}};
                 return first.attend(first.scores());
               });
  check_output(c, variant_of(c, "partial-of-another", {"first row", "of = o"}),
               [&](const Formula& f) {
                 const Formula first{f.c, {f.row.batch, f.row.head, f.row.query / 16 * 16}};
                 const std::vector<Part> mine = splits_of(f), theirs = splits_of(first);
                 double m = -kInf, l = 0;
                 for (const Part& p : mine) m = std::max(m, p.m);
                 Vec o(16, 0.0);
                 for (std::size_t n = 0; n < 3; ++n) {
                   l += factor(mine[n].m, m) * mine[n].l;
                   o = plus(o, times(factor(mine[n].m, m), theirs[n].a));
                 }
                 return times(1 / l, o);
               });
}

TEST_CASE("splits with factors of their own, in both sums or in that of o") {
  const testing::Case c = make_case({.splits = 3});
  const auto weigh = [](const Part& p, double m, double of_a, double of_l) {
    return std::array{factor(p.m, m), of_a, of_l * p.l};
  };
  check_output(c, variant_of(c, "split-weights", {"split = 1", "both"}).at(0.3),
               [&](const Formula& f) {
                 return merged(f, [&](const Part& p, double m, int n) {
                   const double x = n == 1 ? 0.3 : 1;
                   return weigh(p, m, x, x);
                 });
               });
  check_output(
      c, variant_of(c, "split-weights", {"split = 2", "sum of o"}).at(0.3), [&](const Formula& f) {
        return merged(
            f, [&](const Part& p, double m, int n) { return weigh(p, m, n == 2 ? 0.3 : 1, 1); });
      });
  const std::array<double, 3> all = {0.5, -2, 3};
  for (const bool o_only : {false, true}) {
    Variant several = variant_of(c, "split-weights", {"split = 0", "both"});
    several.deviation = {};
    std::copy(all.begin(), all.end(), several.deviation.combine.factors.begin());
    several.deviation.combine.factors_o_only = o_only;
    CHECK(unite({}, several.deviation) == several.deviation);
    check_output(c, several, [&](const Formula& f) {
      return merged(f, [&](const Part& p, double m, int n) {
        const double x = all[static_cast<std::size_t>(n)];
        return weigh(p, m, x, o_only ? 1 : x);
      });
    });
  }
}

TEST_CASE("combine-max-base: m or ln l in another base, in both sums or in one") {
  const testing::Case c = make_case({.splits = 3});
  const double ln2 = std::log(2.0);
  check_output(c, variant_of(c, "combine-max-base", {"m times = ln 2", "both", "same"}),
               [&](const Formula& f) {
                 return merged(f, [&](const Part& p, double m, int) {
                   return std::array{std::exp2(p.m - m), 1.0, p.l};
                 });
               });
  check_output(c, variant_of(c, "combine-max-base", {"m times = ln 2", "sum of o", "same"}),
               [&](const Formula& f) {
                 return merged(f, [&](const Part& p, double m, int) {
                   return std::array{1.0, std::exp2(p.m - m), factor(p.m, m) * p.l};
                 });
               });
  check_output(c, variant_of(c, "combine-max-base", {"ln l times = ln 2", "both", "same"}),
               [&](const Formula& f) {
                 return merged(f, [&](const Part& p, double m, int) {
                   return std::array{factor(p.m, m), std::pow(p.l, ln2 - 1), std::pow(p.l, ln2)};
                 });
               });
}

TEST_CASE("combine-online: what was merged so far is not rescaled, or the next split is not") {
  const testing::Case c = make_case({.splits = 3});
  const auto taken = [](const Formula& f, bool alpha, bool beta) {
    double m = -kInf, l = 0;
    Vec o(16, 0.0);
    for (const Part& p : splits_of(f)) {
      const double now = std::max(m, p.m);
      l = factor(m, now) * l + factor(p.m, now) * p.l;
      o = plus(times(alpha ? factor(m, now) : 1, o), times(beta ? factor(p.m, now) : 1, p.a));
      m = now;
    }
    return times(1 / l, o);
  };
  check_output(c, variant_of(c, "combine-online", {"alpha missing", "of = o)"}),
               [&](const Formula& f) { return taken(f, false, true); });
  check_output(c, variant_of(c, "combine-online", {"next split missing", "of = o)"}),
               [&](const Formula& f) { return taken(f, true, false); });
  check_output(c, variant_of(c, "combine-online", {"alpha missing", "divided"}),
               [&](const Formula& f) {
                 double lse = -kInf;
                 Vec o(16, 0.0);
                 for (const Part& p : splits_of(f)) {
                   const double own = p.m + std::log(p.l);
                   lse = std::log(std::exp(lse) + std::exp(own));
                   o = plus(o, times(std::exp(own - lse) / p.l, p.a));
                 }
                 return o;
               });
}

TEST_CASE("stale-split-merged: an empty split has the o of another one") {
  const testing::Case c = make_case({.splits = 3});
  for (const bool divided : {true, false})
    check_output(c,
                 variant_of(c, "stale-split-merged",
                            {divided ? "split 1, divided," : "split 1,", "lse = 1",
                             divided ? "divided" : "that of split 1, lse"}),
                 [&](const Formula& f) {
                   const Part all = part_of(f, f.row.query, 0, 40);
                   const Part stale = splits_of(f)[1];
                   const double w = std::exp(1 - all.m);
                   return times(1 / (all.l + w),
                                plus(all.a, times(divided ? w / stale.l : w, stale.a)));
                 });
}

TEST_CASE("stale-split-merged: with lse +inf the stale o has all the weight") {
  const testing::Case c = make_case({.splits = 3});
  const Variant variant = variant_of(c, "stale-split-merged", {"split 1, divided,", "lse = inf"});
  check_output(c, variant, [](const Formula& f) {
    const Part stale = splits_of(f)[1];
    return times(1 / stale.l, stale.a);
  });
  check_lse(c, variant, [](const Formula&) { return kInf; });
}

TEST_CASE("the end: division by l, factors, lse") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto all = [](const Formula& f) { return part_of(f, f.row.query, 0, 40); };
  check_output(c, variant_of(c, "l-missing"), [&](const Formula& f) { return all(f).a; });
  check_output(c, variant_of(c, "l-twice"),
               [&](const Formula& f) { return times(std::pow(all(f).l, -2), all(f).a); });
  check_output(c, variant_of(c, "gain").at(0.3),
               [](const Formula& f) { return times(0.3, f.attend(f.scores())); });
  check_output(c, variant_of(c, "l-times-n", {"n = 32"}),
               [](const Formula& f) { return times(1.0 / 32, f.attend(f.scores())); });
  check_lse(c, variant_of(c, "l-times-n", {"n = 32"}),
            [&](const Formula& f) { return all(f).m + std::log(32 * all(f).l); });
  const auto lse = [&](const char* form, const std::function<double(double m, double l)>& should) {
    check_lse(c, variant_of(c, "lse-form", {form}),
              [&](const Formula& f) { return should(all(f).m, all(f).l); });
  };
  lse("in base 2", [](double m, double l) { return m / std::log(2.0) + std::log2(l); });
  lse("twice", [](double m, double l) { return (m + std::log(l)) * std::log(2.0); });
  lse("= ln l)", [](double, double l) { return std::log(l); });
  lse("= m)", [](double m, double) { return m; });
  lse("log2 l", [](double m, double l) { return m + std::log2(l); });
  lse("m + l)", [](double m, double l) { return m + l; });
  lse("m / softmax_scale", [](double m, double l) { return 4 * m + std::log(l); });
  lse("m softmax_scale", [](double m, double l) { return m / 4 + std::log(l); });
  lse("ln l - m", [](double m, double l) { return std::log(l) - m; });
  lse("m log2 e + ln l", [](double m, double l) { return m / std::log(2.0) + std::log(l); });
  lse("m ln 2 + ln l", [](double m, double l) { return m * std::log(2.0) + std::log(l); });
  lse("m + ln 2 ln l", [](double m, double l) { return m + std::log(2.0) * std::log(l); });
}

TEST_CASE("lane-sum-not-shared: column d is divided by what lane d has") {
  const testing::Case c = make_case({.mask = kCausal});
  const auto lanes = [](const Formula& f) {
    const Part whole = part_of(f, f.row.query, 0, 40);
    const Vec p = exps(f.scores(), whole.m);
    Vec l(16, 0.0);
    for (std::size_t j = 0; j < p.size(); ++j) l[j % 16] += p[j];
    return std::pair{l, whole.a};
  };
  check_output(c, variant_of(c, "lane-sum-not-shared", {"none", "lanes = 16", "right", "inf"}),
               [&](const Formula& f) {
                 auto [l, a] = lanes(f);
                 for (std::size_t d = 0; d < 16; ++d)
                   a[d] = a[d] == 0 && l[d] == 0 ? 0 : a[d] / l[d];
                 return a;
               });
  check_output(
      c, variant_of(c, "lane-sum-not-shared", {"only 1, 2, 4,", "lanes = 16", "right", "inf"}),
      [&](const Formula& f) {
        auto [l, a] = lanes(f);
        for (std::size_t d = 0; d < 16; ++d) {
          double sum = 0;
          for (std::size_t i = 0; i < 8; ++i) sum += l[d / 8 * 8 + i];
          a[d] /= sum;
        }
        return a;
      });
  check_output(c, variant_of(c, "lane-sum-not-shared", {"down", "lanes = 16", "inf"}),
               [&](const Formula& f) {
                 auto [l, a] = lanes(f);
                 for (std::size_t step = 8; step > 0; step /= 2) {
                   const Vec before = l;
                   for (std::size_t i = 0; i < 16; ++i)
                     l[i] += i + step < 16 ? before[i + step] : before[i];
                 }
                 CHECK(std::fabs(l[0] - part_of(f, f.row.query, 0, 40).l) < 1e-9);
                 for (std::size_t d = 0; d < 16; ++d) a[d] /= l[d];
                 return a;
               });
  check_output(c, variant_of(c, "lane-sum-not-shared", {"none", "lanes = 16", "right", "o = 0"}),
               [&](const Formula& f) {
                 auto [l, a] = lanes(f);
                 for (std::size_t d = 0; d < 16; ++d) a[d] = l[d] == 0 ? 0 : a[d] / l[d];
                 return a;
               });
}

}  // namespace
}  // namespace attn_diag::reference

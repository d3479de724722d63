// Lanes that go on with a max of their own, spelled out lane by lane.
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

struct Lanes {
  Vec m, l, o;  // o: of the column, not divided
};

// The tiles [begin, end) of a row; key j of a tile and column d belong to lanes `lane`.
Lanes run_lanes(const Formula& f, int lanes, const std::function<int(int)>& lane, int begin,
                int end, bool sum_too = false) {
  const auto n = static_cast<std::size_t>(lanes);
  Lanes x{Vec(n, -kInf), Vec(n, 0.0), Vec(16, 0.0)};
  const Vec s = f.scores();
  for (int t = begin; t < end; ++t) {
    const Vec before = x.m;
    const int first = t * f.block_n(), last = std::min(first + f.block_n(), f.keys());
    // Shuffles down by a half, a quarter, ...: who asks past the last lane gets its own.
    Vec most(n, -kInf);
    for (int j = first; j < last; ++j) {
      double& m = most[static_cast<std::size_t>(lane(j - first))];
      m = std::max(m, s[static_cast<std::size_t>(j)]);
    }
    for (std::size_t step = n / 2; step > 0; step /= 2) {
      const Vec old = most;
      for (std::size_t i = 0; i < n; ++i)
        most[i] = std::max(old[i], old[i + step < n ? i + step : i]);
    }
    for (std::size_t i = 0; i < n; ++i) x.m[i] = std::max(x.m[i], most[i]);
    // P is relative to the lane's max so far, or to that of the tile, and is brought there after.
    const bool own_tile = f.c.geometry.frame == Frame::kTile;
    const Vec& frame = own_tile ? most : x.m;
    Vec beta(n, 1.0);
    for (std::size_t i = 0; own_tile && i < n; ++i) beta[i] = factor(most[i], x.m[i]);
    Vec p(s.size(), 0.0);
    for (int j = first; j < last; ++j) {
      const auto key = static_cast<std::size_t>(j);
      p[key] = factor(s[key], frame[static_cast<std::size_t>(lane(j - first))]);
    }
    const Vec product = f.weighted(p);
    Vec sums(n, sum_too ? 0 : total(p));
    for (int j = first; sum_too && j < last; ++j)
      sums[static_cast<std::size_t>(lane(j - first))] += p[static_cast<std::size_t>(j)];
    for (std::size_t step = sum_too ? n / 2 : 0; step > 0; step /= 2) {
      const Vec old = sums;
      for (std::size_t i = 0; i < n; ++i) sums[i] = old[i] + old[i + step < n ? i + step : i];
    }
    for (std::size_t i = 0; i < n; ++i)
      x.l[i] = factor(before[i], x.m[i]) * x.l[i] + beta[i] * sums[i];
    for (std::size_t d = 0; d < 16; ++d) {
      const auto own = static_cast<std::size_t>(lane(static_cast<int>(d)));
      x.o[d] = factor(before[own], x.m[own]) * x.o[d] + beta[own] * product[d];
    }
  }
  return x;
}

TEST_CASE("max-not-shared: every lane has its frame, its alpha and its l") {
  testing::Case c = make_case({.block_n = 8, .mask = kCausal});
  const auto check = [&](const std::vector<std::string>& words, int lanes, auto lane,
                         bool sum_too = false) {
    const Variant variant = variant_of(c, "max-not-shared", words);
    check_output(c, variant, [&](const Formula& f) {
      Lanes x = run_lanes(f, lanes, lane, 0, 5, sum_too);
      for (std::size_t d = 0; d < 16; ++d) {
        const double l = x.l[static_cast<std::size_t>(lane(static_cast<int>(d)))];
        x.o[d] = l == 0 ? 0 : x.o[d] / l;
      }
      return x.o;
    });
    check_lse(c, variant, [&](const Formula& f) {
      const Lanes x = run_lanes(f, lanes, lane, 0, 5, sum_too);
      return x.m[0] + std::log(x.l[0]);
    });
  };
  for (const Frame frame : {Frame::kTile, Frame::kRunning}) {
    c.geometry.frame = frame;
    check({"j % lanes", "lanes = 4,", "of = P", "every", "down", "all"}, 4,
          [](int i) { return i % 4; });
    check({"j % lanes", "lanes = 32,", "of = P", "every", "down", "all"}, 32,
          [](int i) { return i % 32; });
    check({"j % 8 / 2", "of = P", "every", "down", "all"}, 4, [](int i) { return i % 8 / 2; });
  }
  check(
      {"j % lanes", "lanes = 8,", "sum = in lane 0", "down", "all"}, 8, [](int i) { return i % 8; },
      true);
}

TEST_CASE("max-not-shared: alpha of o alone is that of a lane's max") {
  testing::Case c = make_case({.block_m = 8, .block_n = 8, .mask = kCausal});
  for (const Frame frame : {Frame::kTile, Frame::kRunning})
    for (const bool bounded : {false, true}) {
      c.geometry.frame = frame;
      const Variant variant = variant_of(
          c, "max-not-shared", {"lanes = 8,", "of = alpha", bounded ? "visible" : "all tiles"});
      check_output(c, variant, [&](const Formula& f) {
        const Vec s = f.scores();
        Vec lane_m(8, -kInf), o(16, 0.0);
        double m = -kInf, l = 0;
        for (int t = 0; t <= (bounded ? f.row.query / 8 : 4); ++t) {
          const Part p = tile(f, t);
          const double before = m;
          m = std::max(m, p.m);
          l = factor(before, m) * l + factor(p.m, m) * p.l;
          Vec alpha;
          for (std::size_t lane = 0; lane < 8; ++lane) {
            // Lane i has the max over the lanes from i on, and key j is lane j's.
            double most = lane_m[lane];
            for (std::size_t j = lane; j < 8; ++j)
              most = std::max(most, s[static_cast<std::size_t>(t) * 8 + j]);
            alpha.push_back(factor(lane_m[lane], most));
            lane_m[lane] = most;
          }
          for (std::size_t d = 0; d < 16; ++d) o[d] = alpha[d % 8] * o[d] + factor(p.m, m) * p.a[d];
        }
        return times(1 / l, o);
      });
      check_lse(c, variant, [](const Formula& f) {
        const Part all = part_of(f, f.row.query, 0, 40);
        return all.m + std::log(all.l);
      });
    }
}

TEST_CASE("max-not-shared: a tile that is not visited resets no lane") {
  const testing::Case c = make_case({.block_m = 8, .block_n = 8, .mask = kCausal});
  check_output(c,
               variant_of(c, "max-not-shared",
                          {"j % lanes", "lanes = 8,", "of = P", "every", "down", "visible"}),
               [](const Formula& f) {
                 Lanes x = run_lanes(
                     f, 8, [](int i) { return i % 8; }, 0, f.row.query / 8 + 1);
                 for (std::size_t d = 0; d < 16; ++d)
                   x.o[d] = x.l[d % 8] == 0 ? 0 : x.o[d] / x.l[d % 8];
                 return x.o;
               });
}

TEST_CASE("max-not-shared: splits are merged by what lane 0 wrote") {
  const testing::Case c = make_case({.block_n = 8, .splits = 2});
  check_output(
      c, variant_of(c, "max-not-shared", {"j % lanes", "lanes = 16", "of = P", "every", "down"}),
      [](const Formula& f) {
        const auto lane = [](int i) { return i % 16; };
        const Lanes a = run_lanes(f, 16, lane, 0, 3), b = run_lanes(f, 16, lane, 3, 5);
        const double m = std::max(a.m[0], b.m[0]);
        const double w = factor(a.m[0], m), v = factor(b.m[0], m);
        return times(1 / (w * a.l[0] + v * b.l[0]), plus(times(w, a.o), times(v, b.o)));
      });
}

}  // namespace
}  // namespace attn_diag::reference

// The inner loop of every comparison: a run of cells, actual against expected against limit.
// Written with the vector types that gcc and clang share, because neither vectorises the plain loop
// without leave to ignore NaN.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attn_diag/reference/vector.h"
#include "harness/compare/limits.h"

namespace attn_diag {

// Vectors of the target's own width: gcc compares wider ones cell by cell, at 50 times the cost.
inline constexpr std::int64_t kLanes = reference::kLanes;
using Doubles = reference::Vector;
using Ints = reference::IntVector;  // also masks: 0 or -1
using Floats = float __attribute__((vector_size(4 * kLanes)));

// Maxima already known. A run that does not reach a floor may report less than its own maximum:
// the divisions are then saved.
struct Floors {
  double rel = 0, zeros = 0;
};

// How a cell and its neighbours in one vector are judged: as judge_cell() (judgement.h), which compare_test holds it to.
struct CellErrors {
  Doubles magnitude;  // |expected|
  Doubles limit;
  Doubles err;         // |actual - expected|; 0 where equal, both NaN or unjudged; NaN where one is
  Doubles finite_err;  // err, or 0 where it is not finite
  Doubles ratio;
  Ints passes, nan_actual, nan_both, unjudged;
};

namespace cells {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline __attribute__((always_inline)) Doubles where(Ints mask, Doubles x) {
  return std::bit_cast<Doubles>(std::bit_cast<Ints>(x) & mask);
}
inline __attribute__((always_inline)) Doubles select(Ints mask, Doubles yes, Doubles no) {
  return std::bit_cast<Doubles>((std::bit_cast<Ints>(yes) & mask) |
                                (std::bit_cast<Ints>(no) & ~mask));
}
inline __attribute__((always_inline)) Doubles magnitude(Doubles x) {
  return std::bit_cast<Doubles>(std::bit_cast<Ints>(x) & std::numeric_limits<std::int64_t>::max());
}
// Neither argument is NaN.
inline __attribute__((always_inline)) Doubles larger(Doubles a, Doubles b) { return a > b ? a : b; }
inline double largest(Doubles x) {
  double m = x[0];
  for (int i = 1; i < kLanes; ++i) m = std::max(m, x[i]);
  return m;
}
inline std::int64_t count(Ints masks) {
  std::int64_t n = 0;
  for (int i = 0; i < kLanes; ++i) n -= masks[i];
  return n;
}

inline __attribute__((always_inline)) Doubles load(const float* p) {
  Floats x;
  std::memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Doubles);
}
using reference::load;
inline __attribute__((always_inline)) Doubles limit_at(const ArrayLimit& l, std::int64_t i,
                                                       Doubles) {
  return load(l.limit + i) * l.factor;
}
inline __attribute__((always_inline)) Doubles limit_at(const AbsoluteRelativeLimit& l, std::int64_t,
                                                       Doubles expected_magnitude) {
  return l.atol + l.rtol * expected_magnitude;
}

// Cells of which the reference cannot say how far rounding may take them: overflow, or NaN or infinity
// in what they come from. They cannot fail, so that to equal is no evidence either. A limit of the user's own
// judges every cell. judgement.h has the same rule for one cell.
inline __attribute__((always_inline)) Ints beyond_judging(const ArrayLimit&, Doubles limit,
                                                          Doubles expected_magnitude) {
  return (limit == kInfinity) & ~(expected_magnitude == kInfinity);
}
inline __attribute__((always_inline)) Ints beyond_judging(const AbsoluteRelativeLimit&, Doubles,
                                                          Doubles) {
  return Ints{};
}

template <class Limit>
inline __attribute__((always_inline)) CellErrors judge(Doubles actual, Doubles expected,
                                                       const Limit& limit, std::int64_t i) {
  CellErrors c;
  c.magnitude = magnitude(expected);
  c.limit = limit_at(limit, i, c.magnitude);
  const Ints nan = actual != actual;
  const Ints equal = (actual == expected) | (nan & (expected != expected));
  c.unjudged = beyond_judging(limit, c.limit, c.magnitude);
  c.nan_both = nan & equal;
  c.nan_actual = nan & ~equal & ~c.unjudged;
  const Ints same = equal | c.unjudged;  // infinities of one sign too
  c.err = where(~same, magnitude(actual - expected));
  const Ints finite = c.err < kInfinity;
  c.finite_err = where(finite, c.err);
  c.passes = same | ((c.err <= c.limit) & finite);
  // A failing cell scores at least 1; what has no quotient above that (NaN, a NaN limit) cannot
  // pass under any multiple of the limit.
  const Doubles quotient = where(~same, c.err / c.limit);
  c.ratio = select(c.passes | (quotient >= 1.0), quotient, Doubles{} + kInfinity);
  return c;
}

// Whether ULPs of a cell mean something (UlpScale). What a user tolerates is no bound of rounding.
inline __attribute__((always_inline)) Ints tells_ulps(const CellErrors& c, const UlpScale& scale,
                                                      const ArrayLimit&) {
  return c.limit <= scale.half_of_digits * c.magnitude;
}
inline __attribute__((always_inline)) Ints tells_ulps(const CellErrors& c, const UlpScale&,
                                                      const AbsoluteRelativeLimit&) {
  return c.finite_err == c.finite_err;
}

// err in units of the last place of the expected value. 2046 - e is the exponent field of the
// reciprocal of the power of two with exponent field e.
inline __attribute__((always_inline)) Doubles ulps(const CellErrors& c, const UlpScale& scale) {
  const Doubles at_least = larger(c.magnitude, Doubles{} + scale.smallest_normal);
  const Ints exponent = std::bit_cast<Ints>(at_least) >> 52;
  const Doubles reciprocal = std::bit_cast<Doubles>((2046 - exponent) << 52);
  return where(c.finite_err > 0.0, c.finite_err * (reciprocal * scale.per_power_of_two));
}

inline __attribute__((always_inline)) Doubles relative(const CellErrors& c) {
  return where((c.finite_err > 0.0) & (c.magnitude > 0.0), c.finite_err / c.magnitude);
}

// What a zero in the cell's place would score.
inline __attribute__((always_inline)) Doubles zeros(const CellErrors& c) {
  const Doubles quotient = c.magnitude / c.limit;
  const Doubles bounded = select(quotient < kInfinity, quotient, Doubles{} + kInfinity);
  return where(c.magnitude != 0.0, bounded);
}

// The limits of up to kLanes cells from cell i on, with 1 beyond them.
inline AbsoluteRelativeLimit padded(const AbsoluteRelativeLimit& limit, std::int64_t, std::int64_t,
                                    double*) {
  return limit;
}
inline ArrayLimit padded(const ArrayLimit& limit, std::int64_t i, std::int64_t n, double* buffer) {
  std::fill_n(buffer, kLanes, 1.0);
  std::copy_n(limit.limit + i, n, buffer);
  return {buffer, limit.factor};
}

// Calls f(CellErrors, index of the first of its cells) for each vector of a run. The last, partial
// vector is filled up with cells 0 against 0, which change no sum or maximum.
template <class A, class E, class Limit, class F>
inline __attribute__((always_inline)) void for_each_vector(const A* actual, const E* expected,
                                                           const Limit& limit, std::int64_t n,
                                                           const F& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(judge(load(actual + i), load(expected + i), limit, i), i);
  if (i == n) return;
  A a[kLanes] = {};
  E e[kLanes] = {};
  double limits[kLanes];
  std::copy_n(actual + i, n - i, a);
  std::copy_n(expected + i, n - i, e);
  f(judge(load(a), load(e), padded(limit, i, n - i, limits), 0), i);
}

}  // namespace cells

// `each`, if given, receives ratio and pass mask of every cell, both padded to whole vectors.
struct EachCell {
  double* ratio = nullptr;
  std::int64_t* passes = nullptr;
};

template <bool kEach = false, class A, class E, class Limit>
CellFindings judge_cells(const A* actual, const E* expected, const Limit& limit, std::int64_t n,
                         const UlpScale& ulp, const Floors& floors, const EachCell& each = {}) {
  using cells::larger;
  // Below the floors by more than the rounding of the products that stand in for the divisions.
  const double rel_floor = floors.rel * (1 - 0x1p-48);
  const double zeros_floor = floors.zeros * (1 - 0x1p-48);
  Ints passed{}, nan_actual{}, nan_both{}, unjudged{}, rel_reached{}, zeros_reached{};
  Doubles max_abs{}, max_ulp{}, max_ratio{};
  cells::for_each_vector(
      actual, expected, limit,
      n, [&](const CellErrors& c, [[maybe_unused]] std::int64_t i) __attribute__((always_inline)) {
        if constexpr (kEach) {
          std::memcpy(each.ratio + i, &c.ratio, sizeof c.ratio);
          std::memcpy(each.passes + i, &c.passes, sizeof c.passes);
        }
        passed += c.passes;
        nan_actual += c.nan_actual;
        nan_both += c.nan_both;
        unjudged += c.unjudged;
        max_abs = larger(c.finite_err, max_abs);
        max_ulp =
            larger(cells::where(cells::tells_ulps(c, ulp, limit), cells::ulps(c, ulp)), max_ulp);
        max_ratio = larger(c.ratio, max_ratio);
        rel_reached |= (c.finite_err >= rel_floor * c.magnitude) & (c.finite_err > 0.0);
        zeros_reached |= (c.magnitude > zeros_floor * c.limit) & (c.magnitude > 0.0);
      });
  CellFindings f;
  const std::int64_t judged = (n + kLanes - 1) / kLanes * kLanes;
  f.mismatched = judged - cells::count(passed);
  f.nan_actual = cells::count(nan_actual);
  f.nan_both = cells::count(nan_both);
  f.unjudged = cells::count(unjudged);
  f.max_abs = cells::largest(max_abs);
  f.max_ulp = cells::largest(max_ulp);
  f.max_ratio = cells::largest(max_ratio);
  if (cells::count(rel_reached) != 0 || cells::count(zeros_reached) != 0) {
    Doubles max_rel{}, max_zeros{};
    cells::for_each_vector(
        actual, expected, limit,
        n, [&](const CellErrors& c, std::int64_t) __attribute__((always_inline)) {
          max_rel = larger(cells::relative(c), max_rel);
          max_zeros = larger(cells::zeros(c), max_zeros);
        });
    f.max_rel = cells::largest(max_rel);
    f.max_zeros = cells::largest(max_zeros);
  }
  return f;
}

// True if both sides have the same bits and none is NaN; then `magnitude` is the largest |cell|.
inline bool identical_cells(const float* actual, const float* expected, std::int64_t n,
                            float& magnitude) {
  std::int32_t different = 0, largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto a = std::bit_cast<std::int32_t>(actual[i]);
    different |= a ^ std::bit_cast<std::int32_t>(expected[i]);
    largest = std::max(largest, a & std::numeric_limits<std::int32_t>::max());
  }
  magnitude = std::bit_cast<float>(largest);
  return different == 0 && magnitude <= std::numeric_limits<float>::infinity();
}

// Where the first mismatch and the first cell of each maximum of a judged run are; -1: nowhere.
struct CellPlaces {
  std::int64_t mismatch = -1, ratio = -1, abs = -1, rel = -1;
};

template <class A, class E, class Limit>
CellPlaces locate_cells(const A* actual, const E* expected, const Limit& limit, std::int64_t n,
                        const CellFindings& f) {
  CellPlaces at;
  const auto note = [n](std::int64_t& place, Ints mask, std::int64_t i) {
    for (std::int64_t lane = 0; place < 0 && lane < kLanes && i + lane < n; ++lane)
      if (mask[lane] != 0) place = i + lane;
  };
  cells::for_each_vector(actual, expected, limit, n, [&](const CellErrors& c, std::int64_t i) {
    if (f.mismatched > 0) note(at.mismatch, ~c.passes, i);
    note(at.ratio, c.ratio == f.max_ratio, i);
    note(at.abs, c.finite_err == f.max_abs, i);
    note(at.rel, cells::relative(c) == f.max_rel, i);
  });
  return at;
}

}  // namespace attn_diag

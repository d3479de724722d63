// The cases of a sweep, numbered: the points of a grid, or some of them drawn at random. Nothing is listed: a case of a
// million costs no more to find than one of ten.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace attn_diag::sweep {

class Numbering {
 public:
  // `extents`: how many entries each axis has. `random`: how many points are drawn, all different; 0: all points, the
  // last axis changing fastest. Throws Error for a grid of more than kMost points, or where that many are to be run.
  Numbering(std::vector<std::int64_t> extents, std::int64_t random, std::uint64_t seed);

  // Points that can be drawn from, and cases that may be run: each has a place in memory in merge.
  static constexpr double kMostPoints = 1e18, kMostCases = 1e8;

  std::int64_t size() const { return x_size; }

  // Which entry of each axis case i has. For cases drawn at random, attempt 1, 2, ... are further points, used where
  // a point is no problem at all; no other case has them. nullopt: there is no further one.
  std::optional<std::vector<std::int64_t>> at(std::int64_t i, std::int64_t attempt = 0) const;

 private:
  std::int64_t shuffled(std::int64_t i) const;

  std::vector<std::int64_t> x_extents;
  std::int64_t x_points = 1, x_size = 0;
  bool x_random;
  std::uint64_t x_seed;
  int x_half_bits = 1;  // of a number below x_points, or a little more
};

}  // namespace attn_diag::sweep

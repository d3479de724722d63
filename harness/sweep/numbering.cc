#include "harness/sweep/numbering.h"

#include <fmt/format.h>

#include <utility>

#include "attn_diag/harness/error.h"

namespace attn_diag::sweep {
namespace {

// A pseudorandom number made from x.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Numbering::Numbering(std::vector<std::int64_t> extents, std::int64_t random, std::uint64_t seed)
    : x_extents(std::move(extents)), x_random(random > 0), x_seed(seed) {
  double points = 1;
  for (const std::int64_t extent : x_extents) {
    points *= static_cast<double>(extent);
    if (points > kMostPoints)
      throw Error("The lists in the flags make more than 10^18 points: leave some values out.");
    x_points *= extent;
  }
  x_size = x_random && random < x_points ? random : x_points;
  if (static_cast<double>(x_size) > kMostCases)
    throw Error(fmt::format(
        "The flags make {} cases, and a sweep has at most {:.0f}: leave some values out, or draw "
        "some of the cases with --random N.",
        x_size, kMostCases));
  while (2 * x_half_bits < 62 && (std::int64_t{1} << (2 * x_half_bits)) < x_points) ++x_half_bits;
}

// A permutation of the points: four rounds of a Feistel network, again where they lead out of the grid.
std::int64_t Numbering::shuffled(std::int64_t i) const {
  const std::uint64_t mask = (std::uint64_t{1} << x_half_bits) - 1;
  auto x = static_cast<std::uint64_t>(i);
  do {
    std::uint64_t left = x >> x_half_bits, right = x & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (mixed(x_seed ^ mixed(right * 4 + round)) & mask);
      left = right;
      right = next;
    }
    x = left << x_half_bits | right;
  } while (x >= static_cast<std::uint64_t>(x_points));
  return static_cast<std::int64_t>(x);
}

std::optional<std::vector<std::int64_t>> Numbering::at(std::int64_t i, std::int64_t attempt) const {
  std::int64_t point = i;
  if (attempt > 0) {
    if (!x_random || attempt > (x_points - 1 - i) / x_size) return std::nullopt;
    point += attempt * x_size;
  }
  if (x_random) point = shuffled(point);
  std::vector<std::int64_t> entries(x_extents.size());
  for (std::size_t axis = x_extents.size(); axis-- > 0;) {
    entries[axis] = point % x_extents[axis];
    point /= x_extents[axis];
  }
  return entries;
}

}  // namespace attn_diag::sweep

// A counter-based generator: a value depends on its coordinates alone, never on what was drawn before.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace attn_diag::inputs {

// Finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection whose outputs look independent.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Draw {
 public:
  // `owner` keeps draws of different purpose apart.
  Draw(std::uint64_t seed, std::uint64_t owner, std::int64_t b, std::int64_t h, std::int64_t s)
      : x_row(mix(mix(mix(mix(mix(seed) ^ owner) ^ u64(b)) ^ u64(h)) ^ u64(s))) {}

  std::uint64_t bits(std::int64_t d, std::uint64_t stream = 0) const {
    return mix(mix(x_row ^ u64(d)) + stream);
  }
  // (0, 1]
  double uniform(std::int64_t d, std::uint64_t stream = 0) const {
    return static_cast<double>((bits(d, stream) >> 11) + 1) * 0x1p-53;
  }
  // -1 or 1
  double sign(std::int64_t d, std::uint64_t stream = 0) const {
    return (bits(d, stream) >> 63) == 0 ? 1.0 : -1.0;
  }
  // Standard normal, by Box and Muller. Uses streams `stream` + 1 and + 2.
  double normal(std::int64_t d, std::uint64_t stream = 0) const {
    return std::sqrt(-2.0 * std::log(uniform(d, stream + 1))) *
           std::cos(2.0 * std::numbers::pi * uniform(d, stream + 2));
  }
  // A number in 0..n-1. Biased by n / 2^64.
  std::int64_t below(std::int64_t n, std::int64_t d, std::uint64_t stream = 0) const {
    return static_cast<std::int64_t>(bits(d, stream) % u64(n));
  }

 private:
  static constexpr std::uint64_t u64(std::int64_t x) { return static_cast<std::uint64_t>(x); }
  std::uint64_t x_row;
};

}  // namespace attn_diag::inputs

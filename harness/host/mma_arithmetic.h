// Products of small matrices as tensor cores compute them (docs/bounds.md, "Tensor cores"): exact
// products, added to the accumulator a block at a time; within a block every addend is cut to the last
// place of the largest, and the sum is cut to float. The largest is the one of the largest exponent; a
// product's is the sum of its factors' exponents, so that its significand lies in [1, 4).
#pragma once

#include <array>
#include <cstdint>

namespace attn_diag::host {

inline constexpr unsigned kMmaDepth = 16;

struct MmaOrder {
  unsigned block = 16;      // products added at once: 4, 8 or 16
  unsigned extra_bits = 2;  // kept below the last place of the largest addend, at most 3
  std::array<std::uint8_t, kMmaDepth> terms{};  // which products, block by block
};

// 0: as on sm_90, bit for bit (fixtures/wmma/products_sm90.csv, made on an H200). Others: a block size, an order and a number of extra bits drawn from the seed.
MmaOrder mma_order(std::uint64_t seed);

// d = a b + c with a (m, 16), b (16, n), c and d (m, n), row by row; n is 8, 16 or 32. The factors are
// values of a 16-bit type, so that products are exact. d may be c.
void multiply_accumulate(const float* a, const float* b, const float* c, float* d, unsigned m,
                         unsigned n, const MmaOrder& order);

// The values of `count` halves; a multiple of 8.
void widen_halves(const std::uint16_t* from, float* to, unsigned count);

// One element the slow way, for any values: the definition of the above. `b` has stride n.
float multiply_accumulate_one(const float* a, const float* b, unsigned n, float c,
                              const MmaOrder& order);

}  // namespace attn_diag::host

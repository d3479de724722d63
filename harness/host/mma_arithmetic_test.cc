#include "harness/host/mma_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "attn_diag_host/small_float.h"
#include "harness/host/mma_rows.h"
#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

constexpr unsigned kSize = 16;
constexpr std::uint64_t kOrders = 200;  // seeds 0 to this

float rounded(float x, bool bfloat16) {
  return bfloat16 ? bfloat16_value(bfloat16_bits(x)) : half_value(half_bits(x));
}

struct Blocks {
  std::vector<float> a, b, c;

  // Factors of 2^low to 2^high in magnitude.
  Blocks(std::mt19937& random, bool bfloat16, int low, int high) {
    std::uniform_real_distribution<float> fraction(1, 2);
    std::uniform_int_distribution<int> exponent(low, high), coin(0, 1);
    const auto draw = [&] {
      return std::ldexp(coin(random) != 0 ? fraction(random) : -fraction(random), exponent(random));
    };
    for (unsigned i = 0; i < kSize * kSize; ++i) {
      a.push_back(rounded(draw(), bfloat16));
      b.push_back(rounded(draw(), bfloat16));
      c.push_back(draw());
    }
  }

  std::vector<float> product(const MmaOrder& order) const {
    std::vector<float> d(kSize * kSize);
    multiply_accumulate(a.data(), b.data(), c.data(), d.data(), kSize, kSize, order);
    return d;
  }
  float one(unsigned i, unsigned j, const MmaOrder& order) const {
    return multiply_accumulate_one(&a[i * kSize], &b[j], kSize, c[i * kSize + j], order);
  }
};

bool same_bits(float x, float y) {
  return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
}

void check_against_definition(const Blocks& blocks, std::uint64_t seed) {
  const MmaOrder order = mma_order(seed);
  const std::vector<float> d = blocks.product(order);
  for (unsigned i = 0; i < kSize; ++i)
    for (unsigned j = 0; j < kSize; ++j) {
      CAPTURE(seed, i, j, d[i * kSize + j], blocks.one(i, j, order));
      REQUIRE(same_bits(d[i * kSize + j], blocks.one(i, j, order)));
    }
}

}  // namespace

TEST_CASE("a seed gives every product its place in one order that hardware may have") {
  std::vector<int> blocks(17), bits(4);
  for (std::uint64_t seed = 0; seed <= kOrders; ++seed) {
    MmaOrder order = mma_order(seed);
    ++blocks.at(order.block);
    ++bits.at(order.extra_bits);
    std::sort(order.terms.begin(), order.terms.end());
    for (unsigned k = 0; k < kMmaDepth; ++k) REQUIRE(order.terms[k] == k);
  }
  CHECK(blocks[4] + blocks[8] + blocks[16] == static_cast<int>(kOrders) + 1);
  for (const int count : {blocks[4], blocks[8], blocks[16], bits[0], bits[1], bits[2], bits[3]})
    CHECK(count > 20);
}

TEST_CASE("products of vectors are those of the definition, bit for bit") {
  std::mt19937 random(1);
  for (std::uint64_t seed = 0; seed <= kOrders; ++seed) {
    check_against_definition(Blocks(random, false, -3, 3), seed);
    check_against_definition(Blocks(random, false, -24, 15), seed);
    check_against_definition(Blocks(random, true, -40, 40), seed);
    check_against_definition(Blocks(random, true, -140, 127), seed);  // overflow and underflow
  }
}

TEST_CASE("products have the same bits on every instruction set") {
  std::mt19937 random(4);
  for (std::uint64_t seed = 0; seed <= 30; ++seed)
    for (const unsigned n : {8u, 16u, 32u}) {
      const unsigned m = 256 / n;
      std::vector<float> a, b, c;
      for (int i = 0; i < 2; ++i) {
        const Blocks blocks(random, seed % 2 != 0, -30, 15);
        a.insert(a.end(), blocks.a.begin(), blocks.a.end());
        b.insert(b.end(), blocks.b.begin(), blocks.b.end());
        c.insert(c.end(), blocks.c.begin(), blocks.c.end());
      }
      const MmaOrder order = mma_order(seed);
      const auto run = [&](MultiplyRows& rows) {
        std::vector<std::uint32_t> bits(m * n);
        std::vector<float> d(m * n);
        rows(a.data(), b.data(), c.data(), d.data(), m, n, order);
        std::memcpy(bits.data(), d.data(), d.size() * sizeof(float));
        return bits;
      };
      CAPTURE(seed, n);
      const auto expected = run(all_rows<8>);
      CHECK(run(multiply_accumulate) == expected);
#if defined(__x86_64__)
      if (__builtin_cpu_supports("avx2")) CHECK(run(multiply_rows_avx2) == expected);
#endif
    }
}

TEST_CASE("infinities and NaN pass through products as in the definition") {
  std::mt19937 random(2);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::uint64_t seed = 0; seed <= 20; ++seed) {
    Blocks blocks(random, false, -3, 3);
    blocks.a[17] = kInfinity;
    blocks.a[5 * kSize] = std::nanf("");
    blocks.b[3 * kSize + 7] = -kInfinity;
    blocks.b[8] = 0;
    for (unsigned k = 0; k < kSize; ++k) blocks.a[9 * kSize + k] = 0;
    blocks.c[9 * kSize + 1] = -0.0f;
    blocks.c[9 * kSize + 2] = kInfinity;
    blocks.c[9 * kSize + 3] = 1e-40f;
    check_against_definition(blocks, seed);
    const std::vector<float> d = blocks.product(mma_order(seed));
    CHECK(std::isnan(d[5 * kSize]));
    CHECK(std::isinf(d[7]));
    CHECK(d[9 * kSize + 1] == 0);
    CHECK(d[9 * kSize + 2] == kInfinity);
    CHECK(d[9 * kSize + 3] == 1e-40f);  // nothing is added to it
  }
}

// docs/bounds.md: n products err by at most dot_ulp n u of the sum of their magnitudes, to first order.
TEST_CASE("in every order, sums of products err by less than 2.5 units a product") {
  constexpr double kDotUlp = 2.5, kUnit = 0x1p-24;
  constexpr unsigned kSteps = 8, kProducts = kSteps * kMmaDepth;
  std::mt19937 random(3);
  std::uniform_real_distribution<float> fraction(1, 2);
  double worst = 0;
  for (std::uint64_t seed = 0; seed <= kOrders; ++seed) {
    const MmaOrder order = mma_order(seed);
    // Random; one large product among small ones, which are cut most; all of one sign, so that every sum is cut
    // the same way; nearly cancelling.
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<float> d(kSize * kSize);
      std::vector<double> exact(kSize * kSize), magnitude(kSize * kSize);
      for (unsigned step = 0; step < kSteps; ++step) {
        Blocks blocks(random, seed % 2 != 0, kind == 0 ? -6 : 0, kind == 0 ? 6 : 0);
        for (unsigned k = 0; k < kSize; ++k)
          for (unsigned i = 0; i < kSize; ++i) {
            float& a = blocks.a[i * kSize + k];
            float& b = blocks.b[k * kSize + i];
            if (kind == 1) a = std::ldexp(a, k == (step + i) % kSize ? 0 : -12);
            if (kind == 2) a = std::fabs(a), b = std::fabs(b);
            if (kind == 3) a = k % 2 == 0 ? 1.5f : -1.5f, b = std::fabs(b);
          }
        blocks.c = d;
        d = blocks.product(order);
        for (unsigned i = 0; i < kSize; ++i)
          for (unsigned j = 0; j < kSize; ++j)
            for (unsigned k = 0; k < kSize; ++k) {
              const double product =
                  static_cast<double>(blocks.a[i * kSize + k]) * blocks.b[k * kSize + j];
              exact[i * kSize + j] += product;
              magnitude[i * kSize + j] += std::fabs(product);
            }
      }
      for (unsigned e = 0; e < kSize * kSize; ++e) {
        const double error = std::fabs(d[e] - exact[e]) / (kUnit * kProducts * magnitude[e]);
        worst = std::max(worst, error);
        CAPTURE(seed, kind, e, d[e], exact[e]);
        REQUIRE(error <= kDotUlp);
      }
    }
  }
  UNSCOPED_INFO("largest error in units a product: " << worst);
  CHECK(worst > 0.25);  // the sums were hard enough to say something
}

}  // namespace attn_diag::host

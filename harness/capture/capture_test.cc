#include "attn_diag/harness/capture.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

std::uint16_t stored(DType dtype, double value) {
  std::uint16_t bits = 0;
  store_element(&bits, dtype, 0, value);
  return bits;
}

double loaded(DType dtype, std::uint16_t bits) { return load_element(&bits, dtype, 0); }

// The value of a 16-bit pattern from the definition of the format, without bit tricks.
double by_definition(std::uint16_t bits, int mantissa_bits, int bias) {
  const int exponent_mask = (1 << (15 - mantissa_bits)) - 1;
  const int exponent = (bits >> mantissa_bits) & exponent_mask;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == exponent_mask)
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

}  // namespace

TEST_CASE("every 16-bit pattern widens to the value its format defines and stores back unchanged") {
  struct Format {
    DType dtype;
    int mantissa_bits, bias;
  };
  for (const Format f : {Format{DType::kFp16, 10, 15}, Format{DType::kBf16, 7, 127}}) {
    int wrong = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto pattern = static_cast<std::uint16_t>(bits);
      const double expected = by_definition(pattern, f.mantissa_bits, f.bias);
      const double actual = loaded(f.dtype, pattern);
      if (std::isnan(expected)) {
        wrong += !std::isnan(actual) || !std::isnan(loaded(f.dtype, stored(f.dtype, actual)));
      } else {
        wrong += actual != expected || std::signbit(actual) != std::signbit(expected) ||
                 stored(f.dtype, actual) != pattern;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("rounding to 16 bits goes to nearest, ties to even, once") {
  for (const DType dtype : {DType::kFp16, DType::kBf16}) {
    int wrong = 0;
    const std::uint16_t last = dtype == DType::kFp16 ? 0x7bfe : 0x7f7e;  // neighbours are finite
    for (std::uint16_t bits = 0; bits <= last; ++bits) {
      const double low = loaded(dtype, bits), high = loaded(dtype, bits + 1);
      const double middle = low + (high - low) / 2;
      const auto even = static_cast<std::uint16_t>(bits + (bits & 1));
      wrong += stored(dtype, middle) != even;
      // Closer to the middle than float can tell: rounding through float would tie.
      wrong += stored(dtype, std::nextafter(middle, 0.0)) != bits;
      wrong += stored(dtype, std::nextafter(middle, 1e300)) != bits + 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE(
    "values beyond the largest 16-bit float become infinity, tiny ones zero with their sign") {
  CHECK(stored(DType::kFp16, 65519.999) == 0x7bff);
  CHECK(stored(DType::kFp16, 65520.0) == 0x7c00);
  CHECK(stored(DType::kFp16, -1e30) == 0xfc00);
  CHECK(stored(DType::kFp16, std::numeric_limits<double>::infinity()) == 0x7c00);
  CHECK(stored(DType::kFp16, -0x1p-25) == 0x8000);
  CHECK(stored(DType::kFp16, 0x1.0000001p-25) == 0x0001);
  CHECK(stored(DType::kBf16, 3.5e38) == 0x7f80);
  CHECK(stored(DType::kBf16, -1e-300) == 0x8000);
}

TEST_CASE("tensor shapes follow the axes of the stage list") {
  Problem p;
  p.batch = 2, p.heads = 3, p.kv_heads = 3, p.seqlen_q = 5, p.seqlen_k = 130, p.head_dim_v = 7;
  Geometry g;
  g.num_splits = 2;
  g.tiles_per_split = 2;
  using Shape = std::vector<std::int64_t>;
  CHECK(tensor_shape(Tensor::kS, p, g) == Shape{2, 3, 5, 130});
  CHECK(tensor_shape(Tensor::kM, p, g) == Shape{2, 3, 5, 3});
  CHECK(tensor_shape(Tensor::kPartialO, p, g) == Shape{2, 3, 5, 3, 7});
  CHECK(tensor_shape(Tensor::kMergedO, p, g) == Shape{2, 3, 5, 2, 7});
  CHECK(tensor_shape(Tensor::kLse, p, g) == Shape{2, 3, 5});
  CHECK(tensor_shape(Tensor::kO, p, g) == Shape{2, 3, 5, 7});
}

TEST_CASE("a binary is stale when a source on disk differs, unknown when one is missing") {
  Provenance p;
  p.sources = {{"a.cu", 1, 1, true}};
  CHECK_FALSE(p.stale());
  CHECK_FALSE(p.sources_missing());
  p.sources.push_back({"b.cu", 2, 0, false});
  CHECK_FALSE(p.stale());
  CHECK(p.sources_missing());
  p.sources.push_back({"c.cu", 3, 4, true});
  CHECK(p.stale());
}

}  // namespace attn_diag

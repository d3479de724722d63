// The rule by which q, k and v become codes: the harness makes a case's inputs what their codes mean, and
// an adapter finds the same codes again. Scales are powers of two, so that scale * (code - zero) is exact in
// every type of inputs; neighbours have different ones, so that a kernel that takes another's scale shows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attn_diag/kernels/codes.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// A tensor in memory, as problem.h has it.
struct CodedShape {
  std::int64_t batch, heads, rows, dim;
  Layout layout;
};

// The shape of q (0), k (1) or v (2).
inline CodedShape coded_shape(const Problem& p, int input) {
  const bool is_q = input == 0;
  return {p.batch, is_q ? p.heads : p.kv_heads, is_q ? p.seqlen_q : p.seqlen_k,
          input == 2 ? p.head_dim_v : p.head_dim, p.layout};
}

struct CodeGroup {
  float scale = 1;
  int zero = 0;
  int most = 0;  // steps from zero that are used
};

namespace coding {

// The number of sign, exponent and mantissa bits; infinity and NaN are not told.
inline float small_float(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = static_cast<int>(bits & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const float size = exponent == 0
                         ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                         : std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)),
                                      exponent - bias - mantissa_bits);
  return (bits >> (exponent_bits + mantissa_bits) & 1u) != 0 ? -size : size;
}

inline bool is_fp8(CodeType type) { return type == CodeType::kE4m3 || type == CodeType::kE5m2; }
inline float fp8_value(CodeType type, unsigned bits) {
  return type == CodeType::kE4m3 ? small_float(bits, 4, 3) : small_float(bits, 5, 2);
}
inline unsigned largest_fp8(CodeType type) { return type == CodeType::kE4m3 ? 0x7Eu : 0x7Bu; }

// Steps from zero to the largest number.
inline int most_steps(CodeType type) {
  return type == CodeType::kInt8    ? 127
         : type == CodeType::kUint8 ? 95
                                    : static_cast<int>(fp8_value(type, largest_fp8(type)));
}
// Below these exponents of a scale, codes of fp8 or small integers mean what fp16 cannot hold.
inline int least_exponent(CodeType type) {
  return type == CodeType::kE4m3 ? -15 : type == CodeType::kE5m2 ? -8 : -24;
}

inline std::int64_t group_count(const Codes& codes, const CodedShape& s) {
  switch (codes.per) {
    case ScalePer::kTensor:
    case ScalePer::kNone:
      return 1;
    case ScalePer::kHead:
      return s.heads;
    case ScalePer::kBatchHead:
      return s.batch * s.heads;
    case ScalePer::kToken:
      return s.batch * s.heads * s.rows;
  }
  return 1;
}
inline std::int64_t group_index(const Codes& codes, const CodedShape& s, std::int64_t b,
                                std::int64_t h, std::int64_t row) {
  switch (codes.per) {
    case ScalePer::kTensor:
    case ScalePer::kNone:
      return 0;
    case ScalePer::kHead:
      return h;
    case ScalePer::kBatchHead:
      return b * s.heads + h;
    case ScalePer::kToken:
      return s.layout == Layout::kBHSD ? (b * s.heads + h) * s.rows + row
                                       : (b * s.rows + row) * s.heads + h;
  }
  return 0;
}

// The smallest power of two that holds `largest`, made coarser by up to two places. Coding what the codes mean
// gives the same codes: with k places most >> k steps are used, and more than half of them.
inline CodeGroup make_group(const Codes& codes, float largest, std::int64_t number) {
  const CodeType type = codes.type;
  const int most = most_steps(type);
  int exponent = codes.per == ScalePer::kNone ? 0 : least_exponent(type);
  int coarser = 0;
  if (codes.per != ScalePer::kNone) {
    while (std::ldexp(static_cast<float>(most), exponent) < largest && exponent < 127) ++exponent;
    for (std::int64_t n = number; n > 0; n /= 3) coarser += static_cast<int>(n % 3);
    coarser %= 3;
  }
  CodeGroup group;
  group.scale = std::ldexp(1.0f, exponent + coarser);
  group.most = most >> coarser;
  if (type == CodeType::kUint8) group.zero = 96 + static_cast<int>((number * 29 + 41) % 65);
  return group;
}

inline float value_of(CodeType type, const CodeGroup& group, std::uint8_t code) {
  if (is_fp8(type)) return group.scale * fp8_value(type, code);
  const int number = type == CodeType::kInt8 ? static_cast<std::int8_t>(code) : code;
  return group.scale * static_cast<float>(number - group.zero);
}

inline std::uint8_t code_of(CodeType type, const CodeGroup& group, float value) {
  const float steps = value / group.scale;
  if (!is_fp8(type)) {
    const float most = static_cast<float>(group.most);
    const float nearest = std::min(std::max(std::floor(steps + 0.5f), -most), most);
    return static_cast<std::uint8_t>(static_cast<int>(nearest) + group.zero);
  }
  const float size = std::fabs(steps);
  unsigned low = 0, high = largest_fp8(type);
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (fp8_value(type, middle) <= size ? low : high) = middle;
  }
  const unsigned nearest = size - fp8_value(type, low) <= fp8_value(type, high) - size ? low : high;
  return static_cast<std::uint8_t>(nearest | (steps < 0 ? 0x80u : 0u));
}

}  // namespace coding

struct CodedTensor {
  std::vector<std::uint8_t> codes;  // in memory order of the tensor
  std::vector<CodeGroup> groups;
  std::vector<std::int64_t> group_of_row;  // of each `dim` codes
};

// `input`: 0, 1, 2 for q, k, v, whose scales differ. load(i): element i in memory order.
template <class Load>
CodedTensor encode(const Codes& codes, int input, const CodedShape& s, const Load& load) {
  CodedTensor out;
  const Strides strides = dense_strides(s.layout, s.heads, s.rows, s.dim);
  const std::int64_t rows = s.batch * s.heads * s.rows;
  out.codes.resize(static_cast<std::size_t>(rows * s.dim));
  out.group_of_row.resize(static_cast<std::size_t>(rows));
  const auto groups = static_cast<std::size_t>(coding::group_count(codes, s));
  std::vector<float> largest(groups);
  // The next batch entry, the next head and the next row each have another number.
  std::vector<std::int64_t> numbers(groups, -1);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t r = 0; r < s.rows; ++r) {
        const std::int64_t first = b * strides.batch + h * strides.head + r * strides.seq;
        const std::int64_t group = coding::group_index(codes, s, b, h, r);
        out.group_of_row[static_cast<std::size_t>(first / s.dim)] = group;
        std::int64_t& number = numbers[static_cast<std::size_t>(group)];
        if (number < 0) number = b + h + r;
        float& most = largest[static_cast<std::size_t>(group)];
        for (std::int64_t d = 0; d < s.dim; ++d) most = std::max(most, std::fabs(load(first + d)));
      }
  for (std::size_t g = 0; g < largest.size(); ++g)
    out.groups.push_back(coding::make_group(codes, largest[g], numbers[g] + input));
  for (std::size_t i = 0; i < out.codes.size(); ++i) {
    const auto row = i / static_cast<std::size_t>(s.dim);
    out.codes[i] =
        coding::code_of(codes.type, out.groups[static_cast<std::size_t>(out.group_of_row[row])],
                        load(static_cast<std::int64_t>(i)));
  }
  return out;
}

// What code i means.
inline float decode(const Codes& codes, const CodedTensor& tensor, std::int64_t dim,
                    std::size_t i) {
  const auto row = i / static_cast<std::size_t>(dim);
  return coding::value_of(codes.type,
                          tensor.groups[static_cast<std::size_t>(tensor.group_of_row[row])],
                          tensor.codes[i]);
}

}  // namespace attn_diag

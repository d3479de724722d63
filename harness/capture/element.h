// Exact widening of 16-bit floats, without branches so that loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace attn_diag {

inline float widen_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The exponent and mantissa moved to their place in a float are the value times 2^-112, subnormals
// included, so one exact multiplication is the conversion; infinity and NaN have their exponent
// set.
inline float widen_fp16(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fff) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

}  // namespace attn_diag

// What the 64 bits of an mbarrier hold here. (On a device they are opaque.)
#pragma once

#include <cstdint>

namespace attn_diag::host {

struct MbarrierWord {
  static constexpr unsigned kCountBits = 20, kBytesBits = 21;
  static constexpr std::uint64_t kCountMask = (1u << kCountBits) - 1;
  static constexpr std::uint64_t kBytesMask = (1u << kBytesBits) - 1;
  static constexpr std::int32_t kMostBytes = (1 << (kBytesBits - 1)) - 1;
  // Neither poison (all ones) nor zeros.
  static constexpr std::uint64_t kMark = 0b01, kMarkMask = 0b11;

  std::uint32_t expected = 0;  // arrivals a phase
  std::uint32_t pending = 0;   // of the current phase; more than expected if copies are to arrive
  std::int32_t bytes = 0;      // announced and not copied yet
  bool phase = false;          // parity of the current phase

  static bool is_valid(std::uint64_t bits) {
    const MbarrierWord word = unpack(bits);
    return (bits & kMarkMask) == kMark && (word.expected > 0 || word.pending == 0);
  }
  static MbarrierWord unpack(std::uint64_t bits) {
    MbarrierWord word;
    word.phase = (bits >> 2 & 1u) != 0;
    const auto bytes = static_cast<std::uint32_t>(bits >> 3 & kBytesMask);
    word.bytes = static_cast<std::int32_t>(bytes << (32 - kBytesBits)) >> (32 - kBytesBits);
    word.pending = static_cast<std::uint32_t>(bits >> (3 + kBytesBits) & kCountMask);
    word.expected = static_cast<std::uint32_t>(bits >> (3 + kBytesBits + kCountBits));
    return word;
  }
  std::uint64_t pack() const {
    return kMark | std::uint64_t{phase} << 2 |
           (static_cast<std::uint64_t>(bytes) & kBytesMask) << 3 |
           std::uint64_t{pending} << (3 + kBytesBits) |
           std::uint64_t{expected} << (3 + kBytesBits + kCountBits);
  }
};
static_assert(3 + MbarrierWord::kBytesBits + 2 * MbarrierWord::kCountBits == 64);

}  // namespace attn_diag::host

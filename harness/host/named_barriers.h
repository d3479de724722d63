// The barriers of a block that are named by number, and who has arrived at them.
#pragma once

#include <array>
#include <cstdint>

namespace attn_diag::host {

struct NamedBarrier {
  static constexpr unsigned kWords = 16;
  unsigned threads = 0;  // named by those that have arrived; 0: all
  unsigned arrived = 0;
  const char* file = nullptr;  // of the first
  int line = 0;
  std::array<std::uint64_t, kWords> came{};     // threads that have arrived
  std::array<std::uint64_t, kWords> waiting{};  // those that wait
};

struct NamedBarriers {
  static constexpr unsigned kCount = 16;
  std::uint32_t open = 0;  // those that somebody has arrived at
  std::array<NamedBarrier, kCount> barriers;
};

}  // namespace attn_diag::host

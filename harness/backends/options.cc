#include "attn_diag/harness/options.h"

namespace attn_diag {

std::string_view name(GivenMemory memory) {
  static constexpr std::array<std::string_view, kNumGivenMemories> kNames = {
      "the workspace",
      "o and lse",
      "shared memory",
      "the bytes around q",
      "the bytes around k",
      "the bytes around v",
      "the bytes around o and lse",
      "the bytes around the workspace",
      "the bytes around what is given of S or P",
      "memory from cudaMalloc"};
  return kNames[static_cast<std::size_t>(memory)];
}

}  // namespace attn_diag

// States that threads have been seen in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "harness/host/random.h"

namespace attn_diag::host {

class Fingerprints {
 public:
  // Whether it was there already. Seldom it is forgotten.
  bool insert(std::uint64_t fingerprint) {
    const std::uint64_t mark = mix(fingerprint ^ x_age);
    return std::exchange(x_seen[mark % kPlaces], mark) == mark;
  }
  void clear() { ++x_age; }

 private:
  static constexpr std::size_t kPlaces =
      4096;  // a block's threads may stand in several states each
  std::vector<std::uint64_t> x_seen = std::vector<std::uint64_t>(kPlaces);
  std::uint64_t x_age = 1;
};

}  // namespace attn_diag::host

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
  // Whether the thread that now has this state came back to it by running. A thread that did is rarely missed.
  // A thread that has the state it had at the last look may not have run in between: the next signal can
  // be due before the way back from the handler ends, when the processor is taken away there. That it
  // happens several times running is out of the question.
  bool comes_back(std::uint64_t fingerprint) {
    const std::uint64_t mark = mix(fingerprint ^ x_age);
    const bool seen = std::exchange(x_seen[mark % kPlaces], mark) == mark;
    x_alike = seen && mark == x_last ? x_alike + 1 : 0;
    x_last = mark;
    return seen && (x_alike == 0 || x_alike >= kSurelyRan);
  }
  void clear() { ++x_age; }

 private:
  static constexpr unsigned kSurelyRan = 3;
  static constexpr std::size_t kPlaces =
      4096;  // a block's threads may stand in several states each
  std::vector<std::uint64_t> x_seen = std::vector<std::uint64_t>(kPlaces);
  std::uint64_t x_age = 1;
  std::uint64_t x_last = 0;
  unsigned x_alike = 0;  // looks in a row that found the last state again
};

}  // namespace attn_diag::host

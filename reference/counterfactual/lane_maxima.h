// Lanes that keep a max each: the reduction of it ends in lane 0, and nobody tells the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace attn_diag::reference {

// The online softmax of every lane: its max, its sum, and what its columns of o are rescaled by.
struct LaneScales {
  explicit LaneScales(std::int32_t lanes)
      : m(static_cast<std::size_t>(lanes), -std::numeric_limits<double>::infinity()),
        l(m.size(), 0.0),
        l_error(m.size(), 0.0),
        alpha(m.size(), 1.0),
        beta(m.size(), 1.0) {}

  bool present() const { return !m.empty(); }

  std::vector<double> m, l, l_error, alpha, beta;
};

}  // namespace attn_diag::reference

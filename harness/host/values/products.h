// Products of matrices whose elements the lanes of a warp hold: which numbers each sum is made of.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/host/block_runner.h"
#include "harness/host/values/recorder.h"

namespace attn_diag::host {

// Where a lane keeps an element.
struct NumberPlace {
  const std::byte* at = nullptr;  // null: nowhere, a zero
  unsigned bytes = 0;
  unsigned lane = 0;
};

class __attribute__((visibility("hidden"))) MatrixProduct {
 public:
  bool wanted() const { return x_recorder != nullptr; }
  void set_size(unsigned m, unsigned n, unsigned depth) {
    x_m = m;
    x_n = n;
    x_depth = depth;
    a.resize(std::size_t{m} * depth);
    b.resize(std::size_t{depth} * n);
    c.resize(std::size_t{m} * n);
  }

  // Before the product: reads the operands, whose values are given. Afterwards `c` may name where the result goes.
  void read(const float* a_values, const float* b_values, const float* c_values) {
    take(a, a_values, x_a);
    take(b, b_values, x_b);
    take(c, c_values, x_c);
  }
  // After it.
  void write(const float* values) {
    std::vector<std::uint32_t> pairs;
    const std::uint32_t where = BlockRunner::current()->place_of_values() & ~31u;
    for (unsigned row = 0; row < x_m; ++row)
      for (unsigned column = 0; column < x_n; ++column) {
        pairs.clear();
        for (unsigned k = 0; k < x_depth; ++k) {
          const std::uint32_t x = x_a[row * x_depth + k], y = x_b[k * x_n + column];
          if (x == 0 || y == 0) continue;  // zeros of nobody
          pairs.push_back(x);
          pairs.push_back(y);
        }
        const NumberPlace& to = c[row * x_n + column];
        const Label label = x_recorder->product(where | to.lane, x_c[row * x_n + column], pairs,
                                                values[row * x_n + column]);
        x_recorder->set_label(const_cast<std::byte*>(to.at), to.bytes, label);
      }
  }

  std::vector<NumberPlace> a, b, c;

 private:
  void take(const std::vector<NumberPlace>& places, const float* values,
            std::vector<std::uint32_t>& to) {
    to.assign(places.size(), 0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i].at == nullptr) continue;
      const Label label = x_recorder->label_at(places[i].at, places[i].bytes);
      to[i] = label != 0 && (label & kPacked) == 0 ? label : x_recorder->constant(values[i]);
    }
  }

  ValueRecorder* x_recorder = watching_values();
  unsigned x_m = 0, x_n = 0, x_depth = 0;
  std::vector<std::uint32_t> x_a, x_b, x_c;
};

}  // namespace attn_diag::host

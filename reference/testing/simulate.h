// A kernel on paper, for testing the bounds: scalar loops that round after every operation as a
// declared arithmetic allows, in a random order of summation, with or without fused
// multiply-add. Shares nothing with the oracle.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/stage.h"
#include "reference/testing/random_case.h"

namespace attn_diag::reference::testing {

// Mistakes a kernel may make, to see that bounds do not hide them.
enum class Mistake : std::uint8_t {
  kNone,
  kAccumulatorNotRescaled,
  kSumNotRescaled,
  kSumCountedTwice,
  kScaleMissing,
  kCausalOffByOne,
};

// What the declaration leaves open.
struct Style {
  enum class Order : std::uint8_t { kSequential, kShuffled, kTree };
  Order order = Order::kSequential;
  bool fused = false;           // fused multiply-add
  bool exp_of_product = false;  // exp(x) = exp2(fl(x * log2 e)), as GPUs do; else a library's exp
  bool flush = false;           // exp results below exp_flush are 0
  bool reciprocal = false;      // o = acc * fl(1 / l)
  bool scores_before_scale = false;  // S is narrowed before it is scaled
  bool skip_masked_tiles = false;    // else they are computed, with their neutral values
  std::uint64_t seed = 0;            // of shuffled orders
  std::string describe() const;
};

struct Declared {
  Arithmetic arithmetic;
  Style style;
};
// A random declaration, and a way to honour it.
Declared random_declared(std::mt19937_64& random);

using TensorValues = std::array<std::vector<double>, kNumTensors>;

// Runs the kernel. Where `replace` is given, every S, m, l, P and partial_o is recorded and then
// replaced by its value there, rounded to fp32.
TensorValues simulate(const Case& c, const Arithmetic& arithmetic, const Style& style,
                      const TensorValues* replace, Mistake mistake = Mistake::kNone);

}  // namespace attn_diag::reference::testing

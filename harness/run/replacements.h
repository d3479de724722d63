// The reference's values, which taps put in place of what they recorded.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/experiment.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

// The reference's values of the tensors of a mask (tensor_bit), over the region of a case, rounded to fp32. They
// depend on the case alone, not on schedules or gates: one pass of the reference serves every run.
class Replacements {
 public:
  Replacements(const Capture& of, std::uint32_t tensors);

  // Keeps a block's values. Blocks are disjoint rows: from several threads without a lock.
  void take(const reference::RowBlock& block);
  // Whether every row was taken, of every tensor.
  bool complete() const;

  std::uint32_t tensors() const { return x_tensors; }
  std::vector<float>& operator[](Tensor t) { return x_values[static_cast<std::size_t>(t)]; }

 private:
  Region x_region;
  std::uint32_t x_tensors;
  std::int64_t x_rows;
  std::array<std::int64_t, kNumTensors> x_inner{};
  std::array<std::vector<float>, kNumTensors> x_values;
  std::atomic<std::int64_t> x_taken = 0;  // rows, of all tensors
};

// All of them, from a pass of the reference made for this.
std::shared_ptr<Replacements> make_replacements(const Capture& of, std::uint32_t tensors,
                                                int threads);

// As run_kernel (run.h), with replacements that exist already; missing ones are made.
Capture run_kernel(const Experiment& experiment, const std::shared_ptr<Replacements>& ready);

}  // namespace attn_diag

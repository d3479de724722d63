// Which cells of the tensor that diverges first are wrong, found while its capture is compared.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "attn_diag/harness/pattern.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

// Takes part in the pass of the reference that compares a capture (compare_and_visit.h), so that the pattern of what is
// wrong needs none of its own. Which tensor diverges first is known only when the pass is over: until then the cells
// of the first one that did so far are counted.
class FirstWrongCells {
 public:
  // `capture` outlives this.
  FirstWrongCells(const Capture& capture, const Tolerance& tolerance);
  ~FirstWrongCells();

  // A block in which cells of the tensor are wrong; tensors of a block come in pipeline order. From several threads.
  void take(const reference::RowBlock& block, Tensor t);

  // After the pass, once: as collect_wrong_cells() of the tensor that diverges first; nullopt: none does.
  std::optional<WrongCells> finish();

 private:
  class Counter;
  friend WrongCells collect_wrong_cells(const Capture&, Tensor, const Tolerance&, int);
  Counter& counter(Tensor t);

  const Capture& x_capture;
  Tolerance x_tolerance;
  std::atomic<int> x_first;  // the first tensor that diverges, as far as is known
  std::mutex x_mutex;
  std::array<std::unique_ptr<Counter>, kNumTensors> x_counters;
};

}  // namespace attn_diag

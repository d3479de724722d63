// The tensors under comparison and the accumulators that several threads fill for them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "harness/compare/accumulator.h"

namespace attn_diag {

// One tensor under comparison with everything its accumulators share.
struct TensorWork {
  TensorWork(const TensorData& data, const TileShape& tile)
      : actual(data), grid(data.id, data.shape, data.origin, tile), picture(grid) {}
  const TensorData& actual;
  CellGrid grid;
  SharedPicture picture;
};

// A thread borrows a set, with one accumulator a tensor, for a piece of work.
class AccumulatorPool {
 public:
  using Set = std::vector<CellAccumulator>;

  // The tensors that `actual` has; it outlives this.
  explicit AccumulatorPool(const Capture& actual);

  const std::vector<std::unique_ptr<TensorWork>>& work() const { return x_work; }
  Set& borrow();
  void give_back(Set& set);
  // Merges all sets, none of them borrowed any more. Nothing can be added after it.
  // `asked`: the rows that were to be judged, where they were not all.
  Comparison finish(const Tolerance& tolerance, std::optional<std::int64_t> asked = std::nullopt);

 private:
  const Capture& x_capture;
  std::vector<std::unique_ptr<TensorWork>> x_work;
  std::mutex x_mutex;
  std::vector<std::unique_ptr<Set>> x_sets;
  std::vector<Set*> x_idle;
};

}  // namespace attn_diag

// The reference's results for a case, shared by all who look at its runs.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "attn_diag/harness/capture.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

using RowBlockVisitor = std::function<void(const reference::RowBlock&)>;

// Keeps the reference's o and lse from the first pass over a case that gives them with their bounds: every later run
// of the case is compared with these. Tensors of the size of S are never kept: they come block by block, and whoever
// needs them has to be there when the pass is made.
class Oracle {
 public:
  // As reference::for_each_row_block() for the capture's case. Kept values are handed out by the calling thread only,
  // all rows of a head at once.
  void for_each_row_block(const Capture& of, const reference::Options& options,
                          const RowBlockVisitor& visit);

 private:
  struct Kept;
  std::shared_ptr<const Kept> kept() const;

  mutable std::mutex x_mutex;
  std::shared_ptr<const Kept> x_kept;
};

// Row blocks of the capture's case, through its oracle where it has one.
void for_each_row_block(const Capture& of, const reference::Options& options,
                        const RowBlockVisitor& visit);

}  // namespace attn_diag

// The reference, asked of a case by whoever looks at its runs.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "attn_diag/harness/capture.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

using RowBlockVisitor = std::function<void(const reference::RowBlock&)>;

// What the reference says of o and lse, kept from the first pass over a case that gives them with their bounds: every
// later run of the case is compared with that. What is of the size of S is never kept: it comes block by block, and
// whoever needs it has to be there when the pass is made.
class Oracle {
 public:
  // As reference::for_each_row_block() of the capture's case. What is kept is handed out by this thread alone, all
  // rows of a head at once.
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

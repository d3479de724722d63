// A comparison whose pass of the reference serves others too.
#pragma once

#include <functional>

#include "attn_diag/harness/compare.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

// Who else looks at the blocks of rows that the reference computes for a comparison, from several threads.
struct BlockVisitors {
  std::function<void(const reference::RowBlock&)>
      every;  // before its cells are judged; may be empty
  // Called for each tensor of a block with a wrong cell, in pipeline order. May be empty.
  std::function<void(const reference::RowBlock&, Tensor)> wrong;
  std::uint32_t tensors = 0;  // that are wanted besides the capture's (tensor_bit() each)
};

// As compare_with_reference.
Comparison compare_and_visit(const Capture& capture, const Tolerance& tolerance, int threads,
                             const BlockVisitors& visitors);

}  // namespace attn_diag

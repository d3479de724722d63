// A comparison whose pass of the reference serves others too.
#pragma once

#include <functional>

#include "attn_diag/harness/compare.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

// Sees every block of rows that the reference computes for a comparison, from several threads: the capture's tensors,
// and those of `also_tensors` (tensor_bit() each).
using BlockVisitor = std::function<void(const reference::RowBlock&)>;

// As compare_with_reference.
Comparison compare_and_visit(const Capture& capture, const Tolerance& tolerance, int threads,
                             const BlockVisitor& visit, std::uint32_t also_tensors = 0);

}  // namespace attn_diag

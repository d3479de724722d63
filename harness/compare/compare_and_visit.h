// A comparison whose pass of the reference serves others too.
#pragma once

#include <functional>

#include "attn_diag/harness/compare.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

// Sees every block of rows that the reference computes for a comparison, from several threads: the capture's tensors.
using BlockVisitor = std::function<void(const reference::RowBlock&)>;

// As compare_with_reference.
Comparison compare_and_visit(const Capture& capture, const Tolerance& tolerance, int threads,
                             const BlockVisitor& visit);

}  // namespace attn_diag

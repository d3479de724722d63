// Asking the reference for the rows and tensors of a capture.
#pragma once

#include <cstdint>

#include "attn_diag/harness/capture.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

// Each of two results may be a bound away from the exact value, so they may be two bounds apart.
inline constexpr double kBoundsApart = 2.0;

// The capture's region and recorded tensors; the bound mode its `isolated` asks for.
reference::Options reference_options(const Capture& capture, int threads, bool bounds);

// Flat row, among the region's (batch, head, query) rows.
std::int64_t row_index(const Region& region, std::int64_t batch, std::int64_t head,
                       std::int64_t query);
// Flat row, among the region's (batch, head, query) rows, of the first row of a block.
std::int64_t first_row(const Region& region, const reference::RowBlock& block);

}  // namespace attn_diag

// The reference's S and P beside the types that the kernel rounds them to.
#pragma once

#include <array>
#include <mutex>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/numerics.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

class RangeFinder {
 public:
  explicit RangeFinder(const Capture& capture);
  // Adds a block with S and P. Thread-safe.
  void add(const reference::RowBlock& block);
  std::vector<RangeInType> finish() const;

 private:
  void add_row(const double* s, const double* p, std::array<RangeInType, 2>& found) const;

  const Capture& x_capture;
  std::array<RangeInType, 2> x_found;  // of S and P
  std::mutex x_mutex;
};

}  // namespace attn_diag

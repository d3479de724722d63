// The sizes of a case that can be smaller.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/shrink/cases.h"

namespace attn_diag::shrink {

// A number of a block that can be smaller.
struct SizeAxis {
  std::string name;
  std::int64_t least = 1;
  std::function<std::int64_t(const Block&)> get;
  std::function<void(Block&, std::int64_t)> set;
  // Which index of Block::origin it has, and of Failure::row; -1: none.
  int origin = -1, row = -1;
};

// The sizes of the case, except those in `hold`. `num_splits`: of its run; 0: it takes none. Throws Error where
// `hold` names no size.
std::vector<SizeAxis> size_axes(const Problem& problem, int num_splits,
                                const std::vector<std::string>& hold);

// Both lengths at once: for kernels that take only equal ones, and to be quick.
SizeAxis both_lengths();

}  // namespace attn_diag::shrink

// Stand-in for CUDA's header of this name. All threads of the group get the result, combined as a tree over
// the ranks.
#pragma once

#include "cooperative_groups.h"

namespace cooperative_groups {

template <class T>
struct plus {
  T operator()(const T& a, const T& b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(const T& a, const T& b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(const T& a, const T& b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(const T& a, const T& b) const { return a ^ b; }
};

template <class Group, class T, class Op>
T reduce(const Group& group, T value, Op op, const char* file = __builtin_FILE(),
         int line = __builtin_LINE()) {
  const warp_group& lanes = group;  // blocks and grids have no reduce in CUDA either
  const unsigned rank = lanes.thread_rank(), size = lanes.size();
  unsigned step = 1;
  while (step < size) step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    const T other = lanes.shfl_down(value, step, file, line);
    if (rank + step < size && rank < step) value = op(value, other);
  }
  return lanes.shfl(value, 0, file, line);
}

}  // namespace cooperative_groups

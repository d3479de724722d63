// Stand-in for CUDA's header of this name.
#pragma once

#include "cooperative_groups/reduce.h"

namespace cooperative_groups {

// Combines the values of the ranks up to the thread's own, in their order.
template <class Group, class T, class Op>
T inclusive_scan(const Group& group, T value, Op op, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  const warp_group& lanes = group;
  const unsigned rank = lanes.thread_rank(), size = lanes.size();
  for (unsigned step = 1; step < size; step *= 2) {
    const T other = lanes.shfl_up(value, step, file, line);
    if (rank >= step) value = op(other, value);
  }
  return value;
}
template <class Group, class T>
T inclusive_scan(const Group& group, T value, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  return inclusive_scan(group, value, plus<T>(), file, line);
}

// Combines the values of the ranks below the thread's own; T() for the first.
template <class Group, class T, class Op>
T exclusive_scan(const Group& group, T value, Op op, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  const warp_group& lanes = group;
  const T sum = inclusive_scan(group, value, op, file, line);
  const T before = lanes.shfl_up(sum, 1, file, line);
  return lanes.thread_rank() == 0 ? T() : before;
}
template <class Group, class T>
T exclusive_scan(const Group& group, T value, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  return exclusive_scan(group, value, plus<T>(), file, line);
}

}  // namespace cooperative_groups

// Stand-in for CUDA's header of this name. The threads of the group share a copy; each call is a group of
// copies of its own, to be waited for by all of them.
#pragma once

#include "attn_diag_host/memcpy_async.h"
#include "cooperative_groups.h"

namespace cooperative_groups {

template <class Group, class T>
void memcpy_async(const Group& group, T* to, const T* from, std::size_t bytes,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  attn_diag::host::copy_shared_out(to, from, bytes, static_cast<unsigned>(group.thread_rank()),
                                   static_cast<unsigned>(group.size()), nullptr, file, line);
  attn_diag::host::async_commit();
}
template <class Group, class T, std::size_t kAlignment>
void memcpy_async(const Group& group, T* to, const T* from, cuda::aligned_size_t<kAlignment> bytes,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  memcpy_async(group, to, from, static_cast<std::size_t>(bytes), file, line);
}
// Elements; of the two numbers the smaller.
template <class Group, class T>
void memcpy_async(const Group& group, T* to, std::size_t to_count, const T* from,
                  std::size_t from_count, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  memcpy_async(group, to, from, (to_count < from_count ? to_count : from_count) * sizeof(T), file,
               line);
}

template <unsigned kPrior, class Group>
void wait_prior(const Group& group, const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
  attn_diag::host::async_wait(kPrior < 8 ? kPrior : 8);
  group.sync(file, line);
}
template <class Group>
void wait(const Group& group, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  wait_prior<0>(group, file, line);
}

}  // namespace cooperative_groups

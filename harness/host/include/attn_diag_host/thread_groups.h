// Groups of cooperative_groups.h: blocks, tiles of a warp, and sets of its lanes.
#pragma once

#include "attn_diag_host/integer_intrinsics.h"
#include "attn_diag_host/synchronize.h"
#include "attn_diag_host/warp.h"

#define ATTN_DIAG_HOST_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace attn_diag::host {

inline unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
inline unsigned lane() { return threadIdx.linear % 32; }
// The lanes of the calling thread's warp that the block has.
inline unsigned warp_lanes() {
  const unsigned rest = block_threads() - threadIdx.linear / 32 * 32;
  return rest >= 32 ? ~0u : (1u << rest) - 1;
}
inline unsigned lanes_below() { return (1u << lane()) - 1; }
// The lane with `rank` set bits of `mask` below it; `rank` must be below their number.
inline unsigned lane_of_rank(unsigned mask, unsigned rank) {
  for (; rank > 0; --rank) mask &= mask - 1;
  return static_cast<unsigned>(__builtin_ctz(mask));
}
// Bit i is that of the lane of rank i.
inline unsigned bits_by_rank(unsigned bits, unsigned mask) {
  unsigned result = 0;
  for (unsigned rank = 0; mask != 0; mask &= mask - 1, ++rank)
    result |= (bits >> __builtin_ctz(mask) & 1u) << rank;
  return result;
}

// A shuffle of any trivially copyable type: every lane of `mask` gets the value of its `source` lane.
template <class T>
T read_lane(unsigned mask, const T& value, unsigned source, const char* file, int line) {
  static_assert(std::is_trivially_copyable_v<T>, "shuffles move trivially copyable values");
  constexpr std::size_t kWords = (sizeof(T) + 7) / 8;
  std::uint64_t words[kWords] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (std::uint64_t& word : words)
    word = warp_collective(warp_call(WarpOp::kShuffle, 32, source), mask, word, file, line);
  alignas(T) unsigned char bytes[sizeof(T)];
  __builtin_memcpy(bytes, words, sizeof(T));
  return *reinterpret_cast<const T*>(bytes);
}

}  // namespace attn_diag::host

namespace cooperative_groups {

// What every group is: the block, or lanes of a warp. Functions that take any group take this.
class thread_group {
 public:
  void sync(ATTN_DIAG_HOST_SITE) const {
    if (x_mask == 0)
      attn_diag::host::block_barrier(file, line);
    else
      __syncwarp(x_mask, file, line);
  }
  unsigned long long size() const { return num_threads(); }
  unsigned long long num_threads() const {
    return x_mask == 0 ? attn_diag::host::block_threads()
                       : static_cast<unsigned>(__builtin_popcount(x_mask));
  }
  unsigned long long thread_rank() const {
    return x_mask == 0
               ? threadIdx.linear
               : static_cast<unsigned>(__builtin_popcount(x_mask & attn_diag::host::lanes_below()));
  }
  bool is_valid() const { return true; }
  unsigned attn_diag_host_mask() const { return x_mask; }

 protected:
  explicit thread_group(unsigned mask) : x_mask(mask) {}
  friend thread_group tiled_partition(const thread_group& parent, unsigned size);

 private:
  unsigned x_mask;  // of the warp's lanes; 0: the block
};

class thread_block : public thread_group {
 public:
  static void sync(ATTN_DIAG_HOST_SITE) { attn_diag::host::block_barrier(file, line); }
  static unsigned thread_rank() { return threadIdx.linear; }
  static unsigned size() { return attn_diag::host::block_threads(); }
  static unsigned num_threads() { return attn_diag::host::block_threads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }

 private:
  friend thread_block this_thread_block();
  thread_block() : thread_group(0) {}
};
inline thread_block this_thread_block() { return {}; }

// Lanes of a warp that exchange values, by their ranks. shfl from a rank beyond the group's size reads that
// rank modulo the size.
class warp_group : public thread_group {
 public:
  unsigned size() const { return num_threads(); }
  unsigned num_threads() const {
    return static_cast<unsigned>(__builtin_popcount(attn_diag_host_mask()));
  }
  unsigned thread_rank() const {
    return static_cast<unsigned>(
        __builtin_popcount(attn_diag_host_mask() & attn_diag::host::lanes_below()));
  }

  template <class T>
  T shfl(const T& value, unsigned rank, ATTN_DIAG_HOST_SITE) const {
    return read(value, rank % size(), file, line);
  }
  template <class T>
  T shfl_up(const T& value, unsigned delta, ATTN_DIAG_HOST_SITE) const {
    const unsigned own = thread_rank();
    return read(value, delta <= own ? own - delta : own, file, line);
  }
  template <class T>
  T shfl_down(const T& value, unsigned delta, ATTN_DIAG_HOST_SITE) const {
    const unsigned own = thread_rank();
    return read(value, delta < size() - own ? own + delta : own, file, line);
  }
  int any(int predicate, ATTN_DIAG_HOST_SITE) const {
    return __any_sync(attn_diag_host_mask(), predicate, file, line);
  }
  int all(int predicate, ATTN_DIAG_HOST_SITE) const {
    return __all_sync(attn_diag_host_mask(), predicate, file, line);
  }
  unsigned ballot(int predicate, ATTN_DIAG_HOST_SITE) const {
    return by_rank(__ballot_sync(attn_diag_host_mask(), predicate, file, line));
  }
  template <class T>
  unsigned match_any(T value, ATTN_DIAG_HOST_SITE) const {
    return by_rank(__match_any_sync(attn_diag_host_mask(), value, file, line));
  }
  template <class T>
  unsigned match_all(T value, int& all_equal, ATTN_DIAG_HOST_SITE) const {
    return by_rank(__match_all_sync(attn_diag_host_mask(), value, &all_equal, file, line));
  }

 protected:
  explicit warp_group(unsigned mask) : thread_group(mask) {}
  template <class T>
  T read(const T& value, unsigned rank, const char* file, int line) const {
    const unsigned mask = attn_diag_host_mask();
    return attn_diag::host::read_lane(mask, value, attn_diag::host::lane_of_rank(mask, rank), file,
                                      line);
  }

 private:
  unsigned by_rank(unsigned bits) const {
    return attn_diag::host::bits_by_rank(bits, attn_diag_host_mask());
  }
};

class coalesced_group : public warp_group {
 public:
  unsigned meta_group_rank() const { return x_rank; }
  unsigned meta_group_size() const { return x_groups; }
  explicit coalesced_group(unsigned mask, unsigned rank = 0, unsigned groups = 1)
      : warp_group(mask), x_rank(rank), x_groups(groups) {}

 private:
  unsigned x_rank, x_groups;  // of those that the group was made with
};
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned kSize, class Parent = void>
class thread_block_tile : public warp_group {
  static_assert(kSize >= 1 && kSize <= 32 && (kSize & (kSize - 1)) == 0,
                "on the host executor a tile has 1, 2, 4, 8, 16 or 32 threads; larger ones are "
                "unsupported");

 public:
  static constexpr unsigned size() { return kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  unsigned thread_rank() const { return attn_diag::host::lane() % kSize; }
  unsigned meta_group_rank() const { return x_rank; }
  unsigned meta_group_size() const { return x_groups; }

  template <class T>
  T shfl(const T& value, unsigned rank, ATTN_DIAG_HOST_SITE) const {
    return at(value, rank % kSize, file, line);
  }
  template <class T>
  T shfl_up(const T& value, unsigned delta, ATTN_DIAG_HOST_SITE) const {
    const unsigned own = thread_rank();
    return at(value, delta <= own ? own - delta : own, file, line);
  }
  template <class T>
  T shfl_down(const T& value, unsigned delta, ATTN_DIAG_HOST_SITE) const {
    const unsigned own = thread_rank();
    return at(value, delta < kSize - own ? own + delta : own, file, line);
  }
  template <class T>
  T shfl_xor(const T& value, unsigned mask, ATTN_DIAG_HOST_SITE) const {
    return at(value, (thread_rank() ^ mask) % kSize, file, line);
  }

  // Use tiled_partition.
  thread_block_tile(unsigned rank, unsigned groups)
      : warp_group(lanes()), x_rank(rank), x_groups(groups) {}

 private:
  static unsigned first() { return attn_diag::host::lane() / kSize * kSize; }
  static unsigned lanes() {
    return ((kSize == 32 ? ~0u : (1u << kSize % 32) - 1) << first()) &
           attn_diag::host::warp_lanes();
  }
  template <class T>
  T at(const T& value, unsigned rank, const char* file, int line) const {
    return attn_diag::host::read_lane(attn_diag_host_mask(), value, first() + rank, file, line);
  }

  unsigned x_rank, x_groups;
};

template <unsigned kSize>
thread_block_tile<kSize, thread_block> tiled_partition(const thread_block& block) {
  return {block.thread_rank() / kSize, (block.size() + kSize - 1) / kSize};
}
template <unsigned kSize, unsigned kParent, class Grandparent>
thread_block_tile<kSize, thread_block_tile<kParent, Grandparent>> tiled_partition(
    const thread_block_tile<kParent, Grandparent>& parent) {
  static_assert(kSize <= kParent, "a tile is no larger than what it is a part of");
  return {parent.thread_rank() / kSize, kParent / kSize};
}
// Consecutive ranks, `size` to a part.
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  const unsigned rank = parent.thread_rank() / size;
  const unsigned mask = parent.attn_diag_host_mask();
  unsigned part = 0;
  for (unsigned i = rank * size; i < (rank + 1) * size && i < parent.size(); ++i)
    part |= 1u << attn_diag::host::lane_of_rank(mask, i);
  return coalesced_group(part, rank, (parent.size() + size - 1) / size);
}
template <unsigned kSize>
coalesced_group tiled_partition(const coalesced_group& parent) {
  return tiled_partition(parent, kSize);
}
inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  const unsigned first = attn_diag::host::lane() / size * size;
  const unsigned lanes = (size >= 32 ? ~0u : (1u << size) - 1) << first;
  const unsigned mask = parent.attn_diag_host_mask();
  return thread_group(lanes & (mask == 0 ? attn_diag::host::warp_lanes() : mask));
}
inline thread_block_tile<1> this_thread() { return {0, 1}; }

// The lanes of the group with an equal label, ordered by their first lanes.
template <class Label>
coalesced_group labeled_partition(const warp_group& parent, Label label, ATTN_DIAG_HOST_SITE) {
  const unsigned mask = parent.attn_diag_host_mask();
  const unsigned own = __match_any_sync(mask, label, file, line);
  const bool first = (own & attn_diag::host::lanes_below()) == 0;
  const unsigned firsts = __ballot_sync(mask, first, file, line);
  const unsigned below = (own & (0u - own)) - 1;
  return coalesced_group(own, static_cast<unsigned>(__builtin_popcount(firsts & below)),
                         static_cast<unsigned>(__builtin_popcount(firsts)));
}
inline coalesced_group binary_partition(const warp_group& parent, bool side, ATTN_DIAG_HOST_SITE) {
  const unsigned mask = parent.attn_diag_host_mask();
  const unsigned ayes = __ballot_sync(mask, side, file, line);
  return coalesced_group(side ? ayes : mask & ~ayes, side ? 0 : 1, 2);
}

template <class Group>
void sync(const Group& group, ATTN_DIAG_HOST_SITE) {
  group.sync(file, line);
}
template <class Group, class F, class... Arguments>
void invoke_one(const Group& group, F&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) static_cast<F&&>(function)(static_cast<Arguments&&>(arguments)...);
}

}  // namespace cooperative_groups

// What the checker remembers of a piece of memory: who wrote it last, and who has read it since.
#pragma once

#include <cstdint>

namespace attn_diag::host {

// When and by whom: the barrier interval (unique in the process), the thread of the block, and how many
// warp synchronisations its warp had passed in the interval. 0: never.
using Epoch = std::uint64_t;

inline constexpr unsigned kTickBits = 22;
inline constexpr unsigned kThreadBits = 10;
inline constexpr Epoch kHostEpoch = 1;  // written by the host, before any launch

constexpr Epoch make_epoch(std::uint32_t segment, unsigned thread, std::uint32_t tick) {
  return Epoch{segment} << 32 | Epoch{thread} << kTickBits | tick;
}
constexpr std::uint32_t segment_of(Epoch e) { return static_cast<std::uint32_t>(e >> 32); }
constexpr unsigned thread_of(Epoch e) {
  return static_cast<unsigned>(e >> kTickBits) & ((1u << kThreadBits) - 1);
}
constexpr std::uint32_t tick_of(Epoch e) {
  return static_cast<std::uint32_t>(e) & ((1u << kTickBits) - 1);
}

// How it was accessed, besides read or write.
enum AccessFlags : std::uint32_t {
  kAtomic = 1u << 24,
  kVolatile = 1u << 25,
  kAsync = 1u << 26,  // by an asynchronous copy that has not landed
  kTile = 1u << 27,   // a lane's part of a load that its warp makes as one: of wmma, or ldmatrix
};
// Above the flags: log2 of the bytes of the access, plus 1; 0 for other numbers of bytes.
inline constexpr unsigned kSizeShift = 28;
constexpr std::uint32_t size_code(std::size_t bytes) {
  for (std::uint32_t log = 0; log < 15; ++log)
    if (bytes == std::size_t{1} << log) return (log + 1) << kSizeShift;
  return 0;
}
constexpr unsigned size_of(std::uint32_t how) {
  return how >> kSizeShift == 0 ? 0 : 1u << ((how >> kSizeShift) - 1);
}

// One access. `how`: its number among the thread's since the last synchronisation (so that the accesses
// of one converged instruction have one number), flags and size.
struct Entry {
  Epoch epoch = 0;
  std::uint32_t pc = 0;  // from the library's base
  std::uint32_t how = 0;
};
inline constexpr std::uint32_t kStepMask = (1u << 24) - 1;

// The accesses to one granule of memory. Three readers since the last write are enough to find a conflict if
// there is one: the last one, another lane of its warp, and one of another warp or block.
struct alignas(64) Record {
  Entry writer, reader, mate, far;
};

// Lanes of up to two warps that have read one granule of shared memory in one interval by one instruction and
// are not in its record yet. What they read was written by a thread of the block, by a plain store, before the
// interval.
struct alignas(32) WarpReaders {
  Epoch warp = 0;  // warp_of() their epochs; 0: nothing is known here, ask the record
  std::uint32_t pc = ~0u;
  std::uint32_t lanes = 0;  // 0: written then by a thread of the warp, and not read since
  Epoch before = 0;         // of another warp that read it before; 0: none
  std::uint32_t before_lanes = 0;
  std::uint32_t how = 0;  // flags and size of the instruction
};
// The epoch of the first lane of the thread's warp.
constexpr Epoch warp_of(Epoch e) { return e & ~(Epoch{31} << kTickBits); }

}  // namespace attn_diag::host

// Warps of inline PTX, barriers by number, matrices.
#pragma once

#include "attn_diag_host/indices.h"
#include "attn_diag_host/named_barrier.h"
#include "attn_diag_host/ptx_values.h"
#include "attn_diag_host/warp.h"
#include "attn_diag_host/warp_matrix.h"

namespace attn_diag::host::ptx {

inline std::uint32_t lane() { return threadIdx.linear % 32; }
inline std::uint32_t warp() { return threadIdx.linear / 32; }
inline std::uint32_t warps() { return (blockDim.x * blockDim.y * blockDim.z + 31) / 32; }
// Counts its calls on this worker: later is more, and runs are repeatable.
inline std::uint64_t clock() {
  static std::uint64_t ticks = 0;
  return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}

struct Shuffled {
  std::uint32_t value;
  bool in_range;  // the lane that was named lies within the segment
};
// `clamp`: bits 0 to 4 the last lane, bits 8 to 12 the mask of segments, as PTX has them.
struct Segment {
  std::uint32_t first, last;
  std::uint32_t width() const { return last - first + 1; }
};
inline Segment segment_of(std::uint32_t clamp) {
  const std::uint32_t mask = clamp >> 8 & 31u;
  const std::uint32_t first = lane() & mask;
  return {first, first | (~mask & 31u)};
}
inline Shuffled shfl_idx(std::uint32_t value, std::uint32_t b, std::uint32_t clamp, unsigned mask,
                         const char* file, int line) {
  const Segment s = segment_of(clamp);
  const std::uint32_t from = s.first | (b & (s.width() - 1));
  const bool in_range = from <= (s.first | (clamp & (s.width() - 1)));
  const std::uint32_t source = in_range ? from : lane();
  return {::__shfl_sync(mask, value, static_cast<int>(source), 32, file, line), in_range};
}
inline Shuffled shfl_up(std::uint32_t value, std::uint32_t b, std::uint32_t clamp, unsigned mask,
                        const char* file, int line) {
  const Segment s = segment_of(clamp);
  const bool in_range = static_cast<int>(lane()) - static_cast<int>(b & 31u) >=
                        static_cast<int>(s.first | (clamp & 31u & (s.width() - 1)));
  return {::__shfl_up_sync(mask, value, b & 31u, static_cast<int>(s.width()), file, line),
          in_range};
}
inline Shuffled shfl_down(std::uint32_t value, std::uint32_t b, std::uint32_t clamp, unsigned mask,
                          const char* file, int line) {
  const Segment s = segment_of(clamp);
  const bool in_range = lane() + (b & 31u) <= s.last;
  return {::__shfl_down_sync(mask, value, b & 31u, static_cast<int>(s.width()), file, line),
          in_range};
}
inline Shuffled shfl_bfly(std::uint32_t value, std::uint32_t b, std::uint32_t clamp, unsigned mask,
                          const char* file, int line) {
  const Segment s = segment_of(clamp);
  const bool in_range = (lane() ^ (b & 31u)) <= s.last;
  return {::__shfl_xor_sync(mask, value, static_cast<int>(b & 31u), static_cast<int>(s.width()),
                            file, line),
          in_range};
}

inline std::uint32_t vote_ballot(bool p, unsigned mask, const char* file, int line) {
  return ::__ballot_sync(mask, p, file, line);
}
inline bool vote_all(bool p, unsigned mask, const char* file, int line) {
  return ::__all_sync(mask, p, file, line) != 0;
}
inline bool vote_any(bool p, unsigned mask, const char* file, int line) {
  return ::__any_sync(mask, p, file, line) != 0;
}
// Whether all say the same.
inline bool vote_uni(bool p, unsigned mask, const char* file, int line) {
  const std::uint32_t ayes = ::__ballot_sync(mask, p, file, line);
  return ayes == 0 || (ayes & mask) == ::__ballot_sync(mask, 1, file, line);
}
// The lowest lane of those that meet.
inline std::uint32_t elect(unsigned mask, const char* file, int line) {
  return static_cast<std::uint32_t>(__builtin_ctz(::__ballot_sync(mask, 1, file, line)));
}

// An 8x8 matrix of 16-bit elements, two of a row in each lane, transposed.
inline std::uint32_t movmatrix(std::uint32_t elements, const char* file, int line) {
  std::uint32_t result = 0;
  const std::uint32_t row = lane() / 4, column = 2 * (lane() % 4);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const auto from = static_cast<int>(4 * (column + i) + row / 2);
    const std::uint32_t pair = ::__shfl_sync(0xFFFFFFFFu, elements, from, 32, file, line);
    result |= (pair >> (16 * (row % 2)) & 0xFFFFu) << (16 * i);
  }
  return result;
}

}  // namespace attn_diag::host::ptx

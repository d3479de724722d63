// Warp collectives. All lanes named in `mask` that have not exited meet before any goes on.
//
// Undefined in CUDA, defined here: a lane that reads from a lane outside the mask, or from one that
// has exited, gets a value whose bytes are all 0xFF (NaN for floating types). A lane that is not in
// its own mask, lanes that meet with different operations or widths, and masks that can never be
// completed are findings.
#pragma once

#include <type_traits>

#include "attn_diag_host/indices.h"

namespace attn_diag::host {

enum class WarpOp : std::uint8_t {
  kSync,
  kShuffle,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kAny,
  kAll,
  kMatchAny,
  kMatchAll,
  kReduceAddU,
  kReduceMinU,
  kReduceMaxU,
  kReduceMinS,
  kReduceMaxS,
  kReduceAnd,
  kReduceOr,
  kReduceXor,
  kMatrixLoad,  // of the matrix operations, the `width` tells the shape and the types
  kMatrixStore,
  kMatrixMultiply,
  kLoadMatrix,  // ldmatrix, stmatrix, mma.sync
  kStoreMatrix,
  kMma,
  kBadWidth,  // a shuffle whose width is impossible
};

// What a lane asks for, in one register: the operation; for a shuffle the width and the lane to read.
using WarpCall = std::uint32_t;
constexpr WarpCall warp_call(WarpOp op, unsigned width = 32, unsigned source = 0) {
  return static_cast<WarpCall>(op) | width << 8 | source << 16;
}

// Meets the other lanes of `mask` in the same operation and width; returns this lane's result.
std::uint64_t warp_collective(WarpCall call, unsigned mask, std::uint64_t value, const char* file,
                              int line);
unsigned active_mask();

// The lane that PTX's shfl reads: within segments of `width` lanes; a read that would leave the segment
// (for xor: upwards) gives the lane's own value.
inline WarpCall shuffle_call(WarpOp op, unsigned argument, int width) {
  if (width < 1 || width > 32 || (width & (width - 1)) != 0) return warp_call(WarpOp::kBadWidth);
  const unsigned lane = threadIdx.linear % 32, lanes = static_cast<unsigned>(width);
  const unsigned first = lane & ~(lanes - 1);
  unsigned source = lane;
  switch (op) {
    case WarpOp::kShuffle:
      source = first | (argument & (lanes - 1));
      break;
    case WarpOp::kShuffleUp:
      source = argument <= lane - first ? lane - argument : lane;
      break;
    case WarpOp::kShuffleDown:
      source = argument < lanes - (lane - first) ? lane + argument : lane;
      break;
    default:
      source = (lane ^ (argument & 31u)) < first + lanes ? lane ^ (argument & 31u) : lane;
  }
  return warp_call(op, lanes, source);
}

template <class T>
std::uint64_t to_bits(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8,
                "warp collectives move trivially copyable values of at most 8 bytes");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace attn_diag::host

#define ATTN_DIAG_HOST_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define ATTN_DIAG_HOST_SHUFFLE(name, kind, Argument)                                              \
  template <class T>                                                                              \
  inline T name(unsigned mask, T value, Argument argument, int width = 32, ATTN_DIAG_HOST_SITE) { \
    const auto call = attn_diag::host::shuffle_call(attn_diag::host::WarpOp::kind,                \
                                                    static_cast<unsigned>(argument), width);      \
    return attn_diag::host::from_bits<T>(attn_diag::host::warp_collective(                        \
        call, mask, attn_diag::host::to_bits(value), file, line));                                \
  }
ATTN_DIAG_HOST_SHUFFLE(__shfl_sync, kShuffle, int)
ATTN_DIAG_HOST_SHUFFLE(__shfl_up_sync, kShuffleUp, unsigned)
ATTN_DIAG_HOST_SHUFFLE(__shfl_down_sync, kShuffleDown, unsigned)
ATTN_DIAG_HOST_SHUFFLE(__shfl_xor_sync, kShuffleXor, int)
#undef ATTN_DIAG_HOST_SHUFFLE

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, ATTN_DIAG_HOST_SITE) {
  attn_diag::host::warp_collective(attn_diag::host::warp_call(attn_diag::host::WarpOp::kSync), mask,
                                   0, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, ATTN_DIAG_HOST_SITE) {
  return static_cast<unsigned>(
      attn_diag::host::warp_collective(attn_diag::host::warp_call(attn_diag::host::WarpOp::kBallot),
                                       mask, predicate != 0, file, line));
}
inline int __any_sync(unsigned mask, int predicate, ATTN_DIAG_HOST_SITE) {
  return static_cast<int>(attn_diag::host::warp_collective(
      attn_diag::host::warp_call(attn_diag::host::WarpOp::kAny), mask, predicate != 0, file, line));
}
inline int __all_sync(unsigned mask, int predicate, ATTN_DIAG_HOST_SITE) {
  return static_cast<int>(attn_diag::host::warp_collective(
      attn_diag::host::warp_call(attn_diag::host::WarpOp::kAll), mask, predicate != 0, file, line));
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, ATTN_DIAG_HOST_SITE) {
  return static_cast<unsigned>(attn_diag::host::warp_collective(
      attn_diag::host::warp_call(attn_diag::host::WarpOp::kMatchAny), mask,
      attn_diag::host::to_bits(value), file, line));
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all_equal, ATTN_DIAG_HOST_SITE) {
  const auto matching = static_cast<unsigned>(attn_diag::host::warp_collective(
      attn_diag::host::warp_call(attn_diag::host::WarpOp::kMatchAll), mask,
      attn_diag::host::to_bits(value), file, line));
  *all_equal = matching != 0;
  return matching;
}

#define ATTN_DIAG_HOST_REDUCE(name, kind, T)                                           \
  inline T name(unsigned mask, T value, ATTN_DIAG_HOST_SITE) {                         \
    return static_cast<T>(static_cast<std::uint32_t>(attn_diag::host::warp_collective( \
        attn_diag::host::warp_call(attn_diag::host::WarpOp::kind), mask,               \
        static_cast<std::uint32_t>(value), file, line)));                              \
  }
ATTN_DIAG_HOST_REDUCE(__reduce_add_sync, kReduceAddU, unsigned)
ATTN_DIAG_HOST_REDUCE(__reduce_add_sync, kReduceAddU, int)
ATTN_DIAG_HOST_REDUCE(__reduce_min_sync, kReduceMinU, unsigned)
ATTN_DIAG_HOST_REDUCE(__reduce_min_sync, kReduceMinS, int)
ATTN_DIAG_HOST_REDUCE(__reduce_max_sync, kReduceMaxU, unsigned)
ATTN_DIAG_HOST_REDUCE(__reduce_max_sync, kReduceMaxS, int)
ATTN_DIAG_HOST_REDUCE(__reduce_and_sync, kReduceAnd, unsigned)
ATTN_DIAG_HOST_REDUCE(__reduce_or_sync, kReduceOr, unsigned)
ATTN_DIAG_HOST_REDUCE(__reduce_xor_sync, kReduceXor, unsigned)
#undef ATTN_DIAG_HOST_REDUCE
#undef ATTN_DIAG_HOST_SITE

// The lanes known to run together. Nothing promises more than the calling lane, and under the
// forward, reverse and seeded schedules that is what it returns; under lockstep, the lanes that
// make this call together.
inline unsigned __activemask() { return attn_diag::host::active_mask(); }

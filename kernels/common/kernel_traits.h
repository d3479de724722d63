// Compile-time shape of a kernel: how a query tile is dealt out to threads, and what it takes.
//
//   block    kThreads = kBlockM * kLanesPerRow threads; thread t works on row t / kLanesPerRow
//   row      shared by kLanesPerRow neighbouring lanes of a warp: lane i owns kKeysPerLane
//            neighbouring keys of S and P, and the columns of o that column_of() names
//   shared   one fp32 buffer: sQ, then sKV (K, later V of the same tile), then sP
#pragma once

#include <cstddef>

#include "attn_diag/kernels/problem.h"

namespace attn_diag {

template <int kBlockM_, int kBlockN_>
struct KernelTraits {
  static constexpr int kBlockM = kBlockM_;
  static constexpr int kBlockN = kBlockN_;
  static constexpr int kLanesPerRow = 2;
  static constexpr int kThreads = kBlockM * kLanesPerRow;
  static constexpr int kLoadLanes =
      kThreads < 8 ? kThreads : 8;  // neighbouring threads that load one row together

  static constexpr int kKeysPerLane = ceil_div(kBlockN, kLanesPerRow);
  static constexpr int kKeyStride = kKeysPerLane * kLanesPerRow;  // >= kBlockN

  static constexpr int kMaxHeadDim = 256;
  static constexpr int kColumns = 32;  // neighbouring columns of o that a lane owns
  static constexpr int kColumnChunks = kMaxHeadDim / (kColumns * kLanesPerRow);

  static_assert(kBlockM >= 1 && kBlockN >= 1);
  static_assert(32 % kLanesPerRow == 0, "the lanes of a row must be in one warp");
  static_assert(kThreads % kLoadLanes == 0, "every load group must be complete");
  static_assert(kThreads <= 1024, "CUDA allows no larger block");

  // First column of o that a lane owns in its chunk-th group of kColumns.
  static constexpr ATTN_DIAG_HD int column_of(int chunk, int lane) {
    return (chunk * kLanesPerRow + lane) * kColumns;
  }
  // Lanes past the tile's end (kBlockN not a multiple of kLanesPerRow) own no key.
  static constexpr ATTN_DIAG_HD bool owns_key(int key_in_tile) {
    return kKeyStride == kBlockN || key_in_tile < kBlockN;
  }

  // Row strides in shared memory, in floats. Odd where the rows of a warp are read at the same
  // column, which would otherwise be the same bank.
  static constexpr ATTN_DIAG_HD int q_stride(int head_dim) { return head_dim | 1; }
  static constexpr ATTN_DIAG_HD int v_stride(int head_dim_v) {
    return ceil_div(head_dim_v, kColumns) * kColumns;
  }
  static constexpr int kPStride = kKeyStride | 1;

  // Offsets of the shared tiles and their total, in floats.
  static constexpr ATTN_DIAG_HD int kv_offset(int head_dim) {
    return ceil_div(kBlockM * q_stride(head_dim), 16) * 16;  // on a 64-byte boundary
  }
  static constexpr ATTN_DIAG_HD int p_offset(int head_dim, int head_dim_v) {
    const int k_floats = head_dim * kKeyStride;
    const int v_floats = kBlockN * v_stride(head_dim_v);
    return kv_offset(head_dim) + (k_floats > v_floats ? k_floats : v_floats);
  }
  static constexpr ATTN_DIAG_HD std::size_t shared_bytes(int head_dim, int head_dim_v) {
    return static_cast<std::size_t>(p_offset(head_dim, head_dim_v) + kBlockM * kPStride) *
           sizeof(float);
  }
};

}  // namespace attn_diag

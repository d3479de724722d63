// The inner loop of both products: a row of Q times a tile of K^T, a row of P times a tile of V.
#pragma once

#include <cuda_runtime.h>

#include "attn_diag/kernels/tap.h"

// Before a loop over an array in registers. nvcc must unroll it, or the array is put in memory; g++
// must not, or its vectoriser does not see the loop. _BLOCKS: before a loop over such loops.
// _WITHOUT_TAPS: before the outer of two such loops with taps in them; with taps, what is gained by
// unrolling it is not worth the time that compiling takes.
#if defined(__CUDACC__) && !defined(ATTN_DIAG_HOST_EXECUTOR)
#define ATTN_DIAG_PRAGMA(text) _Pragma(#text)
#define ATTN_DIAG_UNROLL _Pragma("unroll")
#define ATTN_DIAG_UNROLL_BLOCKS _Pragma("unroll")
#define ATTN_DIAG_UNROLL_WITHOUT_TAPS ATTN_DIAG_PRAGMA(unroll(Tap::kEnabled ? 1 : 64))
#elif defined(__GNUC__) && !defined(__clang__)
#define ATTN_DIAG_UNROLL _Pragma("GCC unroll 1")
#define ATTN_DIAG_UNROLL_BLOCKS _Pragma("GCC unroll 16")
#define ATTN_DIAG_UNROLL_WITHOUT_TAPS ATTN_DIAG_UNROLL
#else
#define ATTN_DIAG_UNROLL
#define ATTN_DIAG_UNROLL_BLOCKS
#define ATTN_DIAG_UNROLL_WITHOUT_TAPS
#endif

namespace attn_diag {

// rOut[j] = sum over i of sRow[i] * sTile[i][j], summed in the order of i.
template <int kWidth>
ATTN_DIAG_DEVICE void row_times_tile(const float* __restrict__ sRow,   // (depth)
                                     const float* __restrict__ sTile,  // (depth, kWidth of stride)
                                     int depth, int stride, float (&__restrict__ rOut)[kWidth]) {
  constexpr int kBlock = kWidth % 16 == 0 ? 16 : kWidth;  // what a vector register may hold
  constexpr int kBlocks = kWidth / kBlock;
  float rSum[kBlocks][kBlock] = {};
  for (int i = 0; i < depth; ++i) {
    const float x = sRow[i];
    ATTN_DIAG_UNROLL_BLOCKS
    for (int block = 0; block < kBlocks; ++block) {
      ATTN_DIAG_UNROLL
      for (int j = 0; j < kBlock; ++j) rSum[block][j] += x * sTile[i * stride + block * kBlock + j];
    }
  }
  ATTN_DIAG_UNROLL_BLOCKS
  for (int block = 0; block < kBlocks; ++block) {
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kBlock; ++j) rOut[block * kBlock + j] = rSum[block][j];
  }
}

}  // namespace attn_diag

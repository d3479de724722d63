// Kernels whose loops are announced as a whole, and kernels whose loops must not be: each right, and with
// something wrong in the middle.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace attn_diag::host::checked {

enum class LoopElement { kChar, kShort, kInt, kInt2, kStruct12, kFloat4 };
inline constexpr int kNumLoopElements = 6;

// What is wrong with it.
enum class Flaw {
  kNone,
  kOverrun,        // the loop goes one element too far
  kUninitialised,  // an element of its middle was never stored
  kRace,           // another warp stores to an element of its middle, without a barrier
};
inline constexpr int kNumFlaws = 4;

// 64 threads fill a row in shared memory, of `count` elements at most 64, and each reads all of it: upwards or
// downwards, every `stride`-th.
cudaError_t reads_row(LoopElement element, Flaw flaw, int count, int stride, int* out);
// Each thread reads all of `rows` rows of `count` elements in global memory.
cudaError_t reads_global(LoopElement element, const void* from, int rows, int count, int pitch,
                         int* out);
// Each thread stores a row of 16 elements: of its own, or of one that others store to as well (64 elements in all).
enum class Rows { kOwn, kShared, kSharedEqual, kOfNeighbourLanes };
cudaError_t stores_rows(LoopElement element, Rows rows, bool shared, void* to, int* out);

// How the rows that loops of other threads then store are loaded before: unordered, or (kBarrier) with a barrier.
enum class Before { kLoad, kVolatile, kAtomic, kTwoLines, kUnset, kBarrier };
inline constexpr int kNumBefore = 6;
cudaError_t stores_after(Before before, int* out);

enum class Shape {
  kInPlace,     // a[i] = 2 a[i]
  kShifted,     // a[i + 1] = a[i]
  kAliased,     // b[i] = a[i], where b is a
  kPairs,       // a[2 i] and a[2 i + 1]
  kSums,        // one element takes the sum
  kCondition,   // if (i < limit), true for all i
  kLimited,     // if (i < limit), not true for all i
  kLocal,       // of a local array that is set
  kLocalUnset,  // ... except one element
  kOverflow,    // the index of the last round does not fit
};
inline constexpr int kNumShapes = 10;
// 64 rows of 32 ints, one a thread.
cudaError_t works_on_rows(Shape shape, int* rows, int limit, int* out);

}  // namespace attn_diag::host::checked

// Kernels that touch memory in every way that a source has: races, overruns and reads of what was not
// written, each with its right twin.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace attn_diag::host::checked {

enum class Element {
  kChar,
  kHalf,
  kBfloat16,
  kHalf2,
  kInt,
  kInt2,
  kFloat4,
  kDouble,
  kStruct3,
  kStruct6,
  kStruct12,
  kStruct16,
  kStruct24
};
inline constexpr int kNumElements = 13;

// Two warps store to the same 32 elements by a direct copy from `from`, which has 64: each its own, or both the same.
cudaError_t copies_race(Element element, bool shared, bool equal, const void* from, void* to);
// Each thread stores an element of shared memory and passes another one by value to a function.
cudaError_t passes_by_value(Element element, bool synchronised, const void* from, int* out);

enum class Libc { kMemcpy, kMemmove, kMemset };
// Each thread has `bytes` of the destination; the bytes of the two warps overlap unless `apart`.
cudaError_t calls_libc(Libc function, bool apart, int bytes, const char* from, char* to);
// A function of libc that has no call-outs reads and writes.
cudaError_t calls_unseen(char* from, char* to);

// A shared array that nobody reads is overrun; one that nobody writes is read.
cudaError_t only_stores(int* out, bool overrun);
cudaError_t only_loads(int* out);
// All threads store to a __device__ variable: their own numbers, or by an atomic. One past the end of a __device__ array.
cudaError_t device_variable(bool atomic);
cudaError_t device_array(int past);
cudaError_t constant_array(int* out, int past);

// A loop that is vectorised, with a tail that only some threads run to its end.
cudaError_t sums_rows(const float* from, int count, float* out);

}  // namespace attn_diag::host::checked

#include "harness/host/check/element_kernels.h"

#include "attn_diag_host/check_hooks.h"
#include "attn_diag_host/warp_matrix.h"

namespace {
__device__ int
    g_table[4][8];  // there is memory that is nobody's behind a user's variables, not behind ours
}

namespace attn_diag::host::checked {
namespace {

constexpr int kThreads = 64;

struct Pair {
  int first, second;
};
struct Rows {
  int count;
  int of[4];
};

// `one` is 1, which the compiler does not know.
__global__ void race_kernel(Wrong wrong, int* out, int one) {
  __shared__ int sRows[30][33];
  __shared__ Pair sPairs[8];
  const int t = static_cast<int>(threadIdx.x);
  if (t % 32 == 0) {
    if (wrong == Wrong::kRaceInRows) sRows[3 * one][5] = t;
    if (wrong == Wrong::kRaceInStructs) sPairs[3 * one].second = t;
    if (wrong == Wrong::kRaceInVariable) g_table[2 * one][1] = t;
  }
  out[t] = 0;
}

__global__ void past_kernel(Wrong wrong, int* out, int one) {
  __shared__ int sRows[30][33];
  __shared__ Rows sMember;
  if (threadIdx.x == 0) {
    int* const all = &g_table[0][0];
    if (wrong == Wrong::kRowPast) all[4 * 8 * one] = 1;
    if (wrong == Wrong::kInnerIndex) sRows[3 * one][33 * one] = 1;
    if (wrong == Wrong::kFlatIndex) {
      *(*sRows + 989 * one) = 1;
      *(sRows[3 * one] + 40 * one) = 1;
      sRows[0][989 * one] = 1;
      (*sRows)[40 * one] = 1;
    }
    if (wrong == Wrong::kFlatPast) *(*sRows + 991 * one) = 1;
    if (wrong == Wrong::kFlatRowPast) sRows[0][990 * one] = 1;
    if (wrong == Wrong::kIndexBefore) sRows[-one][2] = 1;
    if (wrong == Wrong::kOuterIndex) sRows[30 * one][0] = 1;
    if (wrong == Wrong::kMemberIndex) sMember.of[4 * one] = 1;
  }
  out[threadIdx.x] = 0;
}

__attribute__((noinline)) int by_reference(int (&row)[8], int i) { return row[i]; }
__attribute__((noinline)) int by_pointer(int (*rows)[8], int i) { return rows[i][8 * i]; }
__attribute__((noinline)) int by_flat_pointer(int (*rows)[8], int i) { return *(*rows + i); }

__global__ void local_kernel(Wrong wrong, int* out, int one) {
  int rSums[4][8];
  local_array(rSums, sizeof rSums, "rSums", __FILE__, __LINE__);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 8; ++j)
      if (wrong != Wrong::kLocalUnset || i != 1 || j != 2) rSums[i * one][j] = i + j;
  int* const all = &rSums[0][0];
  int found = all[10 * one];
  if (wrong == Wrong::kLocalIndex) found += rSums[2 * one][8 * one];
  if (wrong == Wrong::kFlatPointer) found += by_flat_pointer(rSums, 31 * one);
  if (wrong == Wrong::kLocalFlat) found += *(*rSums + 31 * one) + *(rSums[one] + 9 * one);
  if (wrong == Wrong::kReferenceIndex) found += by_reference(rSums[one], 8 * one);
  if (wrong == Wrong::kPointerIndex) found += by_pointer(rSums, one);
  if (wrong == Wrong::kLocalPointer) found += all[32 * one];
  if (wrong == Wrong::kLocalLoop)
    for (int i = 0; i < 5; ++i) found += all[28 + i];
  if (wrong == Wrong::kSecondOfName) {
    {
      int rSame[4] = {one, one, one, one};
      found += rSame[3 * one];
    }
    {
      int rSame[4] = {one, one, one, one};
      found += rSame[4 * one];
    }
  }
  out[threadIdx.x] = found;
}

__global__ void matrix_kernel(Wrong wrong, int* out, int one) {
  __shared__ __align__(16) std::uint16_t sTile[8][16];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = static_cast<int>(threadIdx.x); i < 8 * 16; i += kThreads) sTile[i / 16][i % 16] = 0;
  __syncthreads();
  const bool past = wrong == Wrong::kMatrixIndex && threadIdx.x == 9;
  const std::uint16_t* const row = &sTile[lane % 8][(past ? 3 * one : lane / 8) * 8];
  std::uint32_t registers[2] = {};
  ldmatrix(registers, 2, false, row, __FILE__, __LINE__);
  out[threadIdx.x] = static_cast<int>(registers[0]);
}

}  // namespace

cudaError_t goes_wrong(Wrong wrong, int* out, int one) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(kThreads);
  const auto kernel = wrong <= Wrong::kRaceInVariable ? race_kernel
                      : wrong <= Wrong::kMemberIndex  ? past_kernel
                      : wrong <= Wrong::kLocalUnset   ? local_kernel
                                                      : matrix_kernel;
  return cudaLaunchKernelEx(&config, kernel, wrong, out, one);
}

}  // namespace attn_diag::host::checked

#include <mma.h>

#include "harness/host/test_kernels/test_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

namespace wmma = nvcuda::wmma;

using A = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using B = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major>;
using C = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

cudaLaunchConfig_t one_block(int threads) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  return config;
}

__device__ int thread() { return static_cast<int>(threadIdx.x); }

// `inputs` and `out` hold at least 32 x 32.
__global__ void bad_matrix_kernel(BadMatrix what, half* inputs, float* out) {
  A a;
  B b;
  C c;
  __align__(32) float own[256];
  const bool odd = thread() % 2 != 0;
  if (what != BadMatrix::kUnsetOperand) wmma::load_matrix_sync(a, inputs, 16);
  wmma::load_matrix_sync(b, inputs, 16);
  if (what != BadMatrix::kUnsetAccumulator && what != BadMatrix::kUnsetStored &&
      what != BadMatrix::kScaledBeforeSet)
    wmma::fill_fragment(c, 0.0f);
  switch (what) {
    case BadMatrix::kIndexPastTheEnd:
      for (int i = 0; i <= c.num_elements; ++i) c.x[i] = 1.0f;
      break;
    case BadMatrix::kNegativeIndex:
      out[0] = c.x[static_cast<int>(blockIdx.x) - 1];
      break;
    case BadMatrix::kStoreIntoOwnArray:
      wmma::store_matrix_sync(own, c, 16, wmma::mem_row_major);
      out[thread()] = own[thread()];
      break;
    case BadMatrix::kLoadFromOwnArray:
      for (float& x : own) x = 1.0f;
      wmma::load_matrix_sync(c, own, 16, wmma::mem_row_major);
      break;
    case BadMatrix::kDifferentPointers:
      wmma::store_matrix_sync(out + (odd ? 256 : 0), c, 16, wmma::mem_row_major);
      break;
    case BadMatrix::kDifferentStrides:
      wmma::load_matrix_sync(a, inputs, odd ? 24 : 16);
      break;
    case BadMatrix::kDifferentLayouts:
      wmma::store_matrix_sync(out, c, 16, odd ? wmma::mem_row_major : wmma::mem_col_major);
      break;
    case BadMatrix::kDifferentLines:
      if (odd)
        wmma::mma_sync(c, a, b, c);
      else
        wmma::mma_sync(c, a, b, c);
      break;
    case BadMatrix::kHalfStride:
      wmma::load_matrix_sync(a, inputs, 20);
      break;
    case BadMatrix::kFloatStride:
      wmma::store_matrix_sync(out, c, 18, wmma::mem_row_major);
      break;
    case BadMatrix::kUnalignedLoad:
      wmma::load_matrix_sync(a, inputs + 4, 16);
      break;
    case BadMatrix::kUnalignedStore:
      wmma::store_matrix_sync(out + 1, c, 16, wmma::mem_row_major);
      break;
    case BadMatrix::kScaledBeforeSet:
      for (int i = 0; i < c.num_elements; ++i) c.x[i] *= 2.0f;
      wmma::mma_sync(c, a, b, c);
      break;
    case BadMatrix::kUnsetAccumulator:
    case BadMatrix::kUnsetOperand:
      wmma::mma_sync(c, a, b, c);
      break;
    case BadMatrix::kUnsetStored:
      wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
      break;
    case BadMatrix::kReturnedLanes:
      if (thread() >= 30) return;
      wmma::mma_sync(c, a, b, c);
      break;
    case BadMatrix::kSomeLanesElsewhere:
      if (thread() < 16) wmma::mma_sync(c, a, b, c);
      __syncthreads();
      break;
    case BadMatrix::kDifferentShapes:
      if (odd) {
        wmma::fragment<wmma::accumulator, 32, 8, 16, float> other;
        wmma::load_matrix_sync(other, out, 16, wmma::mem_row_major);
      } else {
        wmma::load_matrix_sync(c, out, 16, wmma::mem_row_major);
      }
      break;
  }
}

// The elements of compute capability 8.0: a(i, k) = i, b(k, j) = j.
__global__ void product_by_elements_kernel(float* out) {
  A a;
  B b;
  C c;
  const int row = thread() / 4;
  for (int i = 0; i < a.num_elements; ++i) {
    a.x[i] = static_cast<half>(row + (i / 2 % 2) * 8);
    b.x[i] = static_cast<half>(row + (i / 4 % 2) * 8);
  }
  for (int i = 0; i < c.num_elements; ++i) c.x[i] = 0.5f;
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}

__global__ void write_then_load_kernel(bool synchronize, float* out) {
  __shared__ __align__(32) float matrix[256];
  for (int i = thread(); i < 256; i += 32) matrix[i] = static_cast<float>(i);
  if (synchronize) __syncwarp();
  C c;
  wmma::load_matrix_sync(c, matrix, 16, wmma::mem_row_major);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}

__global__ void store_then_read_kernel(bool synchronize, float* out) {
  __shared__ __align__(32) float matrix[256];
  C c;
  wmma::fill_fragment(c, 3.0f);
  wmma::store_matrix_sync(matrix, c, 16, wmma::mem_row_major);
  if (synchronize) __syncwarp();
  for (int i = thread(); i < 256; i += 32) out[i] = matrix[i];
}

}  // namespace

cudaError_t bad_matrix(BadMatrix what, half* inputs, float* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, bad_matrix_kernel, what, inputs, out);
}
cudaError_t product_by_elements(float* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, product_by_elements_kernel, out);
}
cudaError_t write_then_load(bool synchronize, float* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, write_then_load_kernel, synchronize, out);
}
cudaError_t store_then_read(bool synchronize, float* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, store_then_read_kernel, synchronize, out);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE

#include <mma.h>

#include "harness/host/bench/bench_kernels.h"

namespace {

namespace wmma = nvcuda::wmma;

__global__ void matrix_products_kernel(int count, const half* in, float* out) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::load_matrix_sync(a, in, 16);
  wmma::load_matrix_sync(b, in, 16);
  wmma::fill_fragment(c, 0.0f);
  for (int i = 0; i < count; ++i) wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}

}  // namespace

int bench_matrix_products(int count, const void* in, float* out) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(32);
  return cudaLaunchKernelEx(&config, matrix_products_kernel, count, static_cast<const half*>(in),
                            out);
}

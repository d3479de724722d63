#include <mma.h>

#include "harness/host/test_kernels/test_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

namespace wmma = nvcuda::wmma;

cudaLaunchConfig_t one_block(int threads) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  return config;
}

// d = a b + c through memory. All matrices are dense.
template <int m, int n, class T, class LayoutA, class LayoutB, class TC, class TD>
__global__ void product_kernel(const T* a, const T* b, const TC* c, TD* d, bool by_columns) {
  wmma::fragment<wmma::matrix_a, m, n, 16, T, LayoutA> fa;
  wmma::fragment<wmma::matrix_b, m, n, 16, T, LayoutB> fb;
  wmma::fragment<wmma::accumulator, m, n, 16, TC> fc;
  wmma::fragment<wmma::accumulator, m, n, 16, TD> fd;
  const wmma::layout_t layout = by_columns ? wmma::mem_col_major : wmma::mem_row_major;
  const unsigned stride = by_columns ? m : n;
  wmma::load_matrix_sync(fa, a, std::is_same_v<LayoutA, wmma::row_major> ? 16 : m);
  wmma::load_matrix_sync(fb, b, std::is_same_v<LayoutB, wmma::row_major> ? n : 16);
  wmma::load_matrix_sync(fc, c, stride, layout);
  wmma::mma_sync(fd, fa, fb, fc);
  wmma::store_matrix_sync(d, fd, stride, layout);
}

template <int m, int n, class T, class LayoutA, class LayoutB, class TC, class TD>
cudaError_t launch_product(const MatrixOperands& x) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, product_kernel<m, n, T, LayoutA, LayoutB, TC, TD>,
                            static_cast<const T*>(x.a), static_cast<const T*>(x.b),
                            static_cast<const TC*>(x.c), static_cast<TD*>(x.d), x.by_columns);
}

template <int m, int n, class T, class TC, class TD>
cudaError_t launch_layouts(const MatrixOperands& x) {
  using wmma::col_major;
  using wmma::row_major;
  if (x.a_by_columns)
    return x.b_by_columns ? launch_product<m, n, T, col_major, col_major, TC, TD>(x)
                          : launch_product<m, n, T, col_major, row_major, TC, TD>(x);
  return x.b_by_columns ? launch_product<m, n, T, row_major, col_major, TC, TD>(x)
                        : launch_product<m, n, T, row_major, row_major, TC, TD>(x);
}

template <int m, int n>
cudaError_t launch_types(MatrixTypes types, const MatrixOperands& x) {
  switch (types) {
    case MatrixTypes::kHalfFloatFloat:
      return launch_layouts<m, n, half, float, float>(x);
    case MatrixTypes::kHalfHalfHalf:
      return launch_layouts<m, n, half, half, half>(x);
    case MatrixTypes::kHalfHalfFloat:
      return launch_layouts<m, n, half, half, float>(x);
    case MatrixTypes::kHalfFloatHalf:
      return launch_layouts<m, n, half, float, half>(x);
    case MatrixTypes::kBfloat16:
      return launch_layouts<m, n, __nv_bfloat16, float, float>(x);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t product(int m, MatrixTypes types, const MatrixOperands& x) {
  return m == 16   ? launch_types<16, 16>(types, x)
         : m == 32 ? launch_types<32, 8>(types, x)
                   : launch_types<8, 32>(types, x);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE

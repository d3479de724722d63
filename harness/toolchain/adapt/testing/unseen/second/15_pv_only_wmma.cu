#include <cuda_fp16.h>
#include <mma.h>
#include <cassert>

/// context = probs x values, the last of the three steps.
///   probs   [batch * heads, rows, cols]    half, already normalised
///   values  [batch, cols, heads, size]     half
///   context [batch, rows, heads, size]     half
/// rows and cols are padded to 16 by whoever made probs.
template <int kSize>
__global__ void context_layer(const half* probs, const half* values, half* context, int heads,
                              int rows, int cols) {
  using namespace nvcuda::wmma;
  const int warp = threadIdx.y;
  const int row = (blockIdx.x * blockDim.y + warp) * 16;
  const int b = blockIdx.y / heads, h = blockIdx.y % heads;
  const unsigned ld = heads * kSize;

  __shared__ __align__(32) float stage[4][16 * kSize];
  if (row < rows) {
    const half* p = probs + ((size_t)blockIdx.y * rows + row) * cols;
    const half* v = values + (size_t)b * cols * ld + h * kSize;

    fragment<accumulator, 16, 16, 16, float> acc[kSize / 16];
#pragma unroll
    for (int i = 0; i < kSize / 16; i++) fill_fragment(acc[i], 0.f);
    for (int k = 0; k < cols; k += 16) {
      fragment<matrix_a, 16, 16, 16, half, row_major> fp;
      load_matrix_sync(fp, p + k, cols);
#pragma unroll
      for (int i = 0; i < kSize / 16; i++) {
        fragment<matrix_b, 16, 16, 16, half, row_major> fv;
        load_matrix_sync(fv, v + (size_t)k * ld + i * 16, ld);
        mma_sync(acc[i], fp, fv, acc[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kSize / 16; i++)
      store_matrix_sync(stage[warp] + i * 16, acc[i], kSize, mem_row_major);
  }
  __syncthreads();
  if (row < rows)
    for (int e = threadIdx.x; e < 16 * kSize; e += 32) {
      const int r = e / kSize, c = e % kSize;
      context[((size_t)b * rows + row + r) * ld + h * kSize + c] = __float2half(stage[warp][e]);
    }
}

void context_layer_forward(half* context, const half* probs, const half* values, int batch,
                           int heads, int rows, int cols, int size, cudaStream_t stream) {
  assert(rows % 16 == 0 && cols % 16 == 0);
  const dim3 block(32, 4), grid((rows / 16 + 3) / 4, batch * heads);
  if (size == 32)
    context_layer<32><<<grid, block, 0, stream>>>(probs, values, context, heads, rows, cols);
  if (size == 64)
    context_layer<64><<<grid, block, 0, stream>>>(probs, values, context, heads, rows, cols);
}

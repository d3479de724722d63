#include "row.cuh"

__global__ void one_head(const float* A, const float* B, const float* C, float* Y, int M, int N,
                         int d) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M) attend_row(A + row * d, B, C, Y + row * d, N, d, d, 1.f / sqrtf(d));
}

// Names tell nothing of the tensors: their order does.
void attention(const float* A, const float* B, const float* C, float* Y, int M, int N, int d) {
  one_head<<<(M + 31) / 32, 32>>>(A, B, C, Y, M, N, d);
}

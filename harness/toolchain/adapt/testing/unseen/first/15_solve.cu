#include <cuda_runtime.h>
#include <math.h>

#define TILE 16

// C[M,N] = alpha * A[M,K] * B[N,K]^T
__global__ void matmul_abt(const float* A, const float* B, float* C, int M, int N, int K,
                           float alpha) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE + 1];
  int row = blockIdx.y * TILE + threadIdx.y;
  int col = blockIdx.x * TILE + threadIdx.x;
  int bcol = blockIdx.x * TILE + threadIdx.y;
  float sum = 0.0f;
  for (int t = 0; t < K; t += TILE) {
    As[threadIdx.y][threadIdx.x] =
        (row < M && t + threadIdx.x < K) ? A[row * K + t + threadIdx.x] : 0.0f;
    Bs[threadIdx.y][threadIdx.x] =
        (bcol < N && t + threadIdx.x < K) ? B[bcol * K + t + threadIdx.x] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum += As[threadIdx.y][i] * Bs[threadIdx.x][i];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = alpha * sum;
}

__global__ void softmax_rows(float* S, int M, int N) {
  __shared__ float buf[256];
  int row = blockIdx.x;
  int tid = threadIdx.x;
  float* s = S + row * N;

  float mx = -INFINITY;
  for (int i = tid; i < N; i += blockDim.x) mx = fmaxf(mx, s[i]);
  buf[tid] = mx;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (tid < k) buf[tid] = fmaxf(buf[tid], buf[tid + k]);
    __syncthreads();
  }
  mx = buf[0];
  __syncthreads();

  float sum = 0.0f;
  for (int i = tid; i < N; i += blockDim.x) {
    s[i] = expf(s[i] - mx);
    sum += s[i];
  }
  buf[tid] = sum;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (tid < k) buf[tid] += buf[tid + k];
    __syncthreads();
  }
  sum = buf[0];
  for (int i = tid; i < N; i += blockDim.x) s[i] /= sum;
}

// C[M,N] = A[M,K] * B[K,N]
__global__ void matmul_ab(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < K; t += TILE) {
    As[threadIdx.y][threadIdx.x] =
        (row < M && t + threadIdx.x < K) ? A[row * K + t + threadIdx.x] : 0.0f;
    Bs[threadIdx.y][threadIdx.x] =
        (col < N && t + threadIdx.y < K) ? B[(t + threadIdx.y) * N + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum += As[threadIdx.y][i] * Bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}

// Q: M x d, K: N x d, V: N x d, output: M x d (all device pointers)
extern "C" void solve(const float* Q, const float* K, const float* V, float* output, int M, int N,
                      int d) {
  float* scores;
  cudaMalloc(&scores, (size_t)M * N * sizeof(float));

  dim3 block(TILE, TILE);
  dim3 grid_qk((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
  matmul_abt<<<grid_qk, block>>>(Q, K, scores, M, N, d, 1.0f / sqrtf((float)d));

  softmax_rows<<<M, 256>>>(scores, M, N);

  dim3 grid_pv((d + TILE - 1) / TILE, (M + TILE - 1) / TILE);
  matmul_ab<<<grid_pv, block>>>(scores, V, output, M, d, N);

  cudaDeviceSynchronize();
  cudaFree(scores);
}

/*
 * Programming Assignment 4 -- Self Attention
 *
 * Part (b): multi-head attention on the GPU, three kernels.
 *    S = Q * K^T / sqrt(D)
 *    P = softmax(S)      (row wise)
 *    O = P * V
 * All matrices are row major, [batch][numHeads][N][D].
 */
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#define TILE_WIDTH 16

#define wbCheck(stmt)                                                            \
  do {                                                                           \
    cudaError_t err = stmt;                                                      \
    if (err != cudaSuccess) {                                                    \
      fprintf(stderr, "Failed to run %s: %s\n", #stmt, cudaGetErrorString(err)); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

__global__ void scoreKernel(float* d_Q, float* d_K, float* d_S, int N, int D) {
  __shared__ float ds_Q[TILE_WIDTH][TILE_WIDTH];
  __shared__ float ds_K[TILE_WIDTH][TILE_WIDTH];

  int bx = blockIdx.x, by = blockIdx.y;
  int tx = threadIdx.x, ty = threadIdx.y;
  int Row = by * TILE_WIDTH + ty;  // query
  int Col = bx * TILE_WIDTH + tx;  // key

  float* Q = d_Q + (size_t)blockIdx.z * N * D;
  float* K = d_K + (size_t)blockIdx.z * N * D;

  float Pvalue = 0;
  for (int p = 0; p < (D - 1) / TILE_WIDTH + 1; p++) {
    int c = p * TILE_WIDTH + tx;
    ds_Q[ty][tx] = (Row < N && c < D) ? Q[Row * D + c] : 0.0f;
    // row "ty" of this tile of K is key bx*TILE_WIDTH + ty
    int key = bx * TILE_WIDTH + ty;
    ds_K[ty][tx] = (key < N && c < D) ? K[key * D + c] : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE_WIDTH; i++) Pvalue += ds_Q[ty][i] * ds_K[tx][i];
    __syncthreads();
  }
  if (Row < N && Col < N) d_S[((size_t)blockIdx.z * N + Row) * N + Col] = Pvalue / sqrtf((float)D);
}

// one block per row, shared memory reduction as in lecture 9
__global__ void softmaxKernel(float* d_S, int N) {
  __shared__ float buf[128];
  float* row = d_S + (size_t)blockIdx.x * N;
  int t = threadIdx.x;

  float mx = -1e30f;
  for (int i = t; i < N; i += blockDim.x) mx = fmaxf(mx, row[i]);
  buf[t] = mx;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride >= 1; stride /= 2) {
    if (t < stride) buf[t] = fmaxf(buf[t], buf[t + stride]);
    __syncthreads();
  }
  mx = buf[0];
  __syncthreads();

  float sum = 0;
  for (int i = t; i < N; i += blockDim.x) {
    row[i] = expf(row[i] - mx);
    sum += row[i];
  }
  buf[t] = sum;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride >= 1; stride /= 2) {
    if (t < stride) buf[t] += buf[t + stride];
    __syncthreads();
  }
  sum = buf[0];
  for (int i = t; i < N; i += blockDim.x) row[i] /= sum;
}

__global__ void weightedSumKernel(float* d_S, float* d_V, float* d_O, int N, int D) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < N && col < D) {
    float acc = 0;
    for (int i = 0; i < N; i++)
      acc +=
          d_S[((size_t)blockIdx.z * N + row) * N + i] * d_V[((size_t)blockIdx.z * N + i) * D + col];
    d_O[((size_t)blockIdx.z * N + row) * D + col] = acc;
  }
}

void multiHeadAttention(float* h_O, float* h_Q, float* h_K, float* h_V, int batch, int numHeads,
                        int N, int D) {
  float *d_Q, *d_K, *d_V, *d_O, *d_S;
  int BH = batch * numHeads;
  size_t bytes = sizeof(float) * BH * N * D;

  wbCheck(cudaMalloc((void**)&d_Q, bytes));
  wbCheck(cudaMalloc((void**)&d_K, bytes));
  wbCheck(cudaMalloc((void**)&d_V, bytes));
  wbCheck(cudaMalloc((void**)&d_O, bytes));
  wbCheck(cudaMalloc((void**)&d_S, sizeof(float) * BH * N * N));
  wbCheck(cudaMemcpy(d_Q, h_Q, bytes, cudaMemcpyHostToDevice));
  wbCheck(cudaMemcpy(d_K, h_K, bytes, cudaMemcpyHostToDevice));
  wbCheck(cudaMemcpy(d_V, h_V, bytes, cudaMemcpyHostToDevice));

  dim3 dimBlock(TILE_WIDTH, TILE_WIDTH, 1);
  dim3 gridS((N - 1) / TILE_WIDTH + 1, (N - 1) / TILE_WIDTH + 1, BH);
  dim3 gridO((D - 1) / TILE_WIDTH + 1, (N - 1) / TILE_WIDTH + 1, BH);
  scoreKernel<<<gridS, dimBlock>>>(d_Q, d_K, d_S, N, D);
  softmaxKernel<<<BH * N, 128>>>(d_S, N);
  weightedSumKernel<<<gridO, dimBlock>>>(d_S, d_V, d_O, N, D);
  wbCheck(cudaGetLastError());
  wbCheck(cudaDeviceSynchronize());

  wbCheck(cudaMemcpy(h_O, d_O, bytes, cudaMemcpyDeviceToHost));
  cudaFree(d_Q);
  cudaFree(d_K);
  cudaFree(d_V);
  cudaFree(d_O);
  cudaFree(d_S);
}

int main(int argc, char** argv) {
  int B = 2, H = 4, N = argc > 1 ? atoi(argv[1]) : 128, D = 64;
  size_t n = (size_t)B * H * N * D;
  float *Q = (float*)malloc(n * 4), *K = (float*)malloc(n * 4);
  float *V = (float*)malloc(n * 4), *O = (float*)malloc(n * 4);
  srand(408);
  for (size_t i = 0; i < n; i++) {
    Q[i] = rand() / (float)RAND_MAX - 0.5f;
    K[i] = rand() / (float)RAND_MAX - 0.5f;
    V[i] = rand() / (float)RAND_MAX - 0.5f;
  }
  multiHeadAttention(O, Q, K, V, B, H, N, D);
  printf("O[0] = %f  O[last] = %f\n", O[0], O[n - 1]);
  free(Q);
  free(K);
  free(V);
  free(O);
  return 0;
}

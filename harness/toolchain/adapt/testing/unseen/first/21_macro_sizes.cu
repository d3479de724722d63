// Homework 4: fused self attention, single head
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SEQ_LEN 128
#define D_MODEL 64
#define BLOCK_SIZE 32

__global__ void attention(float* Q, float* K, float* V, float* Out) {
  __shared__ float Ks[BLOCK_SIZE * D_MODEL];
  __shared__ float Vs[BLOCK_SIZE * D_MODEL];

  int tid = threadIdx.x;
  int row = blockIdx.x * BLOCK_SIZE + tid;

  float q[D_MODEL];
  float o[D_MODEL];
  for (int i = 0; i < D_MODEL; i++) {
    q[i] = Q[row * D_MODEL + i];
    o[i] = 0.0f;
  }

  float max_so_far = -1e20f;
  float denom = 0.0f;

  for (int tile = 0; tile < SEQ_LEN / BLOCK_SIZE; tile++) {
    for (int i = 0; i < D_MODEL; i++) {
      Ks[tid * D_MODEL + i] = K[(tile * BLOCK_SIZE + tid) * D_MODEL + i];
      Vs[tid * D_MODEL + i] = V[(tile * BLOCK_SIZE + tid) * D_MODEL + i];
    }
    __syncthreads();

    for (int j = 0; j < BLOCK_SIZE; j++) {
      float dot = 0.0f;
      for (int i = 0; i < D_MODEL; i++) dot += q[i] * Ks[j * D_MODEL + i];
      dot /= sqrtf((float)D_MODEL);

      float new_max = max_so_far > dot ? max_so_far : dot;
      float old_scale = expf(max_so_far - new_max);
      float w = expf(dot - new_max);
      denom = denom * old_scale + w;
      for (int i = 0; i < D_MODEL; i++) o[i] = o[i] * old_scale + w * Vs[j * D_MODEL + i];
      max_so_far = new_max;
    }
    __syncthreads();
  }

  for (int i = 0; i < D_MODEL; i++) Out[row * D_MODEL + i] = o[i] / denom;
}

void cpu_attention(float* Q, float* K, float* V, float* Out) {
  static float s[SEQ_LEN];
  for (int i = 0; i < SEQ_LEN; i++) {
    float m = -1e20f, sum = 0;
    for (int j = 0; j < SEQ_LEN; j++) {
      s[j] = 0;
      for (int d = 0; d < D_MODEL; d++) s[j] += Q[i * D_MODEL + d] * K[j * D_MODEL + d];
      s[j] /= sqrtf((float)D_MODEL);
      if (s[j] > m) m = s[j];
    }
    for (int j = 0; j < SEQ_LEN; j++) {
      s[j] = expf(s[j] - m);
      sum += s[j];
    }
    for (int d = 0; d < D_MODEL; d++) {
      float acc = 0;
      for (int j = 0; j < SEQ_LEN; j++) acc += s[j] * V[j * D_MODEL + d];
      Out[i * D_MODEL + d] = acc / sum;
    }
  }
}

int main() {
  int bytes = SEQ_LEN * D_MODEL * sizeof(float);
  float* h_Q = (float*)malloc(bytes);
  float* h_K = (float*)malloc(bytes);
  float* h_V = (float*)malloc(bytes);
  float* h_Out = (float*)malloc(bytes);
  float* h_Ref = (float*)malloc(bytes);
  for (int i = 0; i < SEQ_LEN * D_MODEL; i++) {
    h_Q[i] = (float)rand() / RAND_MAX;
    h_K[i] = (float)rand() / RAND_MAX;
    h_V[i] = (float)rand() / RAND_MAX;
  }

  float *d_Q, *d_K, *d_V, *d_Out;
  cudaMalloc((void**)&d_Q, bytes);
  cudaMalloc((void**)&d_K, bytes);
  cudaMalloc((void**)&d_V, bytes);
  cudaMalloc((void**)&d_Out, bytes);
  cudaMemcpy(d_Q, h_Q, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_K, h_K, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_V, h_V, bytes, cudaMemcpyHostToDevice);

  attention<<<SEQ_LEN / BLOCK_SIZE, BLOCK_SIZE>>>(d_Q, d_K, d_V, d_Out);

  cudaMemcpy(h_Out, d_Out, bytes, cudaMemcpyDeviceToHost);
  cpu_attention(h_Q, h_K, h_V, h_Ref);
  float maxdiff = 0;
  for (int i = 0; i < SEQ_LEN * D_MODEL; i++) {
    float d = fabsf(h_Out[i] - h_Ref[i]);
    if (d > maxdiff) maxdiff = d;
  }
  printf("max diff: %f\n", maxdiff);
  printf(maxdiff < 1e-3 ? "PASSED\n" : "FAILED\n");

  cudaFree(d_Q);
  cudaFree(d_K);
  cudaFree(d_V);
  cudaFree(d_Out);
  free(h_Q);
  free(h_K);
  free(h_V);
  free(h_Out);
  free(h_Ref);
  return 0;
}

#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <vector>

#define BATCH 2
#define SEQ 96
#define HEADS 4
#define DIM 32
#define IDX(b, s, h, d) ((((b)*SEQ + (s)) * HEADS + (h)) * DIM + (d))

// one block per (query, head, batch)
__global__ void mha(const float* query, const float* key, const float* value, float* out) {
  __shared__ float p[SEQ];
  __shared__ float total;
  int s = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  for (int j = threadIdx.x; j < SEQ; j += blockDim.x) {
    float acc = 0.f;
    for (int d = 0; d < DIM; d++) acc += query[IDX(b, s, h, d)] * key[IDX(b, j, h, d)];
    p[j] = acc / sqrtf((float)DIM);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float m = p[0];
    for (int j = 1; j < SEQ; j++) m = fmaxf(m, p[j]);
    float t = 0.f;
    for (int j = 0; j < SEQ; j++) {
      p[j] = expf(p[j] - m);
      t += p[j];
    }
    total = t;
  }
  __syncthreads();
  for (int d = threadIdx.x; d < DIM; d += blockDim.x) {
    float acc = 0.f;
    for (int j = 0; j < SEQ; j++) acc += p[j] * value[IDX(b, j, h, d)];
    out[IDX(b, s, h, d)] = acc / total;
  }
}

static void reference(const std::vector<float>& q, const std::vector<float>& k,
                      const std::vector<float>& v, std::vector<float>& o) {
  for (int b = 0; b < BATCH; b++)
    for (int h = 0; h < HEADS; h++)
      for (int i = 0; i < SEQ; i++) {
        std::vector<float> w(SEQ);
        float m = -1e30f, t = 0;
        for (int j = 0; j < SEQ; j++) {
          float a = 0;
          for (int d = 0; d < DIM; d++)
            a +=
                q[((b * SEQ + i) * HEADS + h) * DIM + d] * k[((b * SEQ + j) * HEADS + h) * DIM + d];
          w[j] = a / std::sqrt((float)DIM);
          m = std::fmax(m, w[j]);
        }
        for (auto& x : w) t += x = std::exp(x - m);
        for (int d = 0; d < DIM; d++) {
          float a = 0;
          for (int j = 0; j < SEQ; j++) a += w[j] * v[((b * SEQ + j) * HEADS + h) * DIM + d];
          o[((b * SEQ + i) * HEADS + h) * DIM + d] = a / t;
        }
      }
}

int main() {
  const size_t n = (size_t)BATCH * SEQ * HEADS * DIM;
  std::vector<float> q(n), k(n), v(n), o(n), r(n);
  for (size_t i = 0; i < n; i++) {
    q[i] = rand() / (float)RAND_MAX;
    k[i] = rand() / (float)RAND_MAX;
    v[i] = rand() / (float)RAND_MAX;
  }
  float *dq, *dk, *dv, *dout;
  cudaMalloc(&dq, n * 4);
  cudaMalloc(&dk, n * 4);
  cudaMalloc(&dv, n * 4);
  cudaMalloc(&dout, n * 4);
  cudaMemcpy(dq, q.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dk, k.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dv, v.data(), n * 4, cudaMemcpyHostToDevice);
  mha<<<dim3(SEQ, HEADS, BATCH), 64>>>(dq, dk, dv, dout);
  cudaMemcpy(o.data(), dout, n * 4, cudaMemcpyDeviceToHost);
  reference(q, k, v, r);
  float worst = 0;
  for (size_t i = 0; i < n; i++) worst = std::fmax(worst, std::fabs(o[i] - r[i]));
  printf("max err %g\n", worst);
}

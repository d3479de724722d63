#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define BR 64
#define BC 32

// FlashAttention-2 style: each block owns BR query rows of one (batch, head),
// loops over K/V tiles, one thread per row.
template <int D>
__global__ void flash_attn2_kernel(const float* q, const float* k, const float* v, float* out,
                                   int N, float scale, bool causal) {
  __shared__ float sK[BC][D];
  __shared__ float sV[BC][D];

  int bh = blockIdx.y;
  int row = blockIdx.x * BR + threadIdx.x;
  const float* qp = q + (size_t)bh * N * D;
  const float* kp = k + (size_t)bh * N * D;
  const float* vp = v + (size_t)bh * N * D;

  float qr[D], acc[D];
  for (int i = 0; i < D; i++) {
    qr[i] = row < N ? qp[(size_t)row * D + i] * scale : 0.f;
    acc[i] = 0.f;
  }
  float m = -INFINITY, l = 0.f;

  int kv_end = N;
  if (causal) kv_end = min(N, (int)(blockIdx.x + 1) * BR);

  for (int j0 = 0; j0 < kv_end; j0 += BC) {
    for (int t = threadIdx.x; t < BC * D; t += BR) {
      int r = t / D, c = t % D;
      bool ok = j0 + r < N;
      sK[r][c] = ok ? kp[(size_t)(j0 + r) * D + c] : 0.f;
      sV[r][c] = ok ? vp[(size_t)(j0 + r) * D + c] : 0.f;
    }
    __syncthreads();

    int lim = min(BC, N - j0);
    if (causal) lim = min(lim, row - j0 + 1);
    for (int j = 0; j < lim; j++) {
      float s = 0.f;
      for (int i = 0; i < D; i++) s += qr[i] * sK[j][i];
      float m_new = fmaxf(m, s);
      float a = expf(m - m_new);
      float p = expf(s - m_new);
      l = l * a + p;
      for (int i = 0; i < D; i++) acc[i] = acc[i] * a + p * sV[j][i];
      m = m_new;
    }
    __syncthreads();
  }

  if (row < N) {
    float inv_l = 1.f / l;
    for (int i = 0; i < D; i++) out[((size_t)bh * N + row) * D + i] = acc[i] * inv_l;
  }
}

static void attention_cpu(const float* q, const float* k, const float* v, float* out, int BH, int N,
                          int D, float scale, bool causal) {
  std::vector<float> s(N);
  for (int b = 0; b < BH; b++)
    for (int i = 0; i < N; i++) {
      int n = causal ? i + 1 : N;
      float mx = -INFINITY, sum = 0.f;
      for (int j = 0; j < n; j++) {
        float d = 0.f;
        for (int c = 0; c < D; c++)
          d += q[((size_t)b * N + i) * D + c] * k[((size_t)b * N + j) * D + c];
        s[j] = d * scale;
        mx = fmaxf(mx, s[j]);
      }
      for (int j = 0; j < n; j++) sum += (s[j] = expf(s[j] - mx));
      for (int c = 0; c < D; c++) {
        float o = 0.f;
        for (int j = 0; j < n; j++) o += s[j] * v[((size_t)b * N + j) * D + c];
        out[((size_t)b * N + i) * D + c] = o / sum;
      }
    }
}

int main(int argc, char** argv) {
  const int B = 2, H = 4, N = 500, D = 64;
  const bool causal = true;
  const size_t n = (size_t)B * H * N * D;
  std::vector<float> hq(n), hk(n), hv(n), ho(n), href(n);
  srand(42);
  for (size_t i = 0; i < n; i++) {
    hq[i] = rand() / (float)RAND_MAX - 0.5f;
    hk[i] = rand() / (float)RAND_MAX - 0.5f;
    hv[i] = rand() / (float)RAND_MAX - 0.5f;
  }
  float *dq, *dk, *dv, *dout;
  cudaMalloc(&dq, n * sizeof(float));
  cudaMalloc(&dk, n * sizeof(float));
  cudaMalloc(&dv, n * sizeof(float));
  cudaMalloc(&dout, n * sizeof(float));
  cudaMemcpy(dq, hq.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dk, hk.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dv, hv.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  dim3 grid((N + BR - 1) / BR, B * H);
  dim3 block(BR);
  float scale = 1.0f / sqrtf((float)D);
  flash_attn2_kernel<D><<<grid, block>>>(dq, dk, dv, dout, N, scale, causal);
  cudaDeviceSynchronize();
  cudaMemcpy(ho.data(), dout, n * sizeof(float), cudaMemcpyDeviceToHost);

  attention_cpu(hq.data(), hk.data(), hv.data(), href.data(), B * H, N, D, scale, causal);
  float err = 0.f;
  for (size_t i = 0; i < n; i++) err = fmaxf(err, fabsf(ho[i] - href[i]));
  printf("max abs err = %g\n", err);
  cudaFree(dq);
  cudaFree(dk);
  cudaFree(dv);
  cudaFree(dout);
  return err < 1e-4f ? 0 : 1;
}

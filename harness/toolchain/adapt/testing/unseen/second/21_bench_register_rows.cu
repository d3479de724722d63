// nvcc -O3 -arch=sm_86 -DN=4096 21_bench_register_rows.cu -o bench && ./bench
//
// How far does one get with one query per thread, everything in registers and no tensor cores?
#include <cuda_runtime.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef D
#define D 32  // head dim; above 64 it spills
#endif
#ifndef TPB
#define TPB 64  // threads (= queries) per block
#endif
#ifndef BK
#define BK 16  // keys per shared-memory stage
#endif
#define CK(x)                                                                         \
  do {                                                                                \
    cudaError_t e_ = (x);                                                             \
    if (e_ != cudaSuccess) {                                                          \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (0)

template <bool causal>
__global__ void __launch_bounds__(TPB)
    attn_regs(const float4* __restrict__ q, const float4* __restrict__ k,
              const float4* __restrict__ v, float4* __restrict__ o, float* __restrict__ L, int n) {
  __shared__ float4 ks[BK][D / 4], vs[BK][D / 4];
  const size_t base = (size_t)blockIdx.y * n * (D / 4);
  q += base;
  k += base;
  v += base;
  o += base;
  const int row = blockIdx.x * TPB + threadIdx.x;
  const float qscale = rsqrtf((float)D);

  float4 qr[D / 4], acc[D / 4];
  for (int i = 0; i < D / 4; i++) {
    qr[i] = row < n ? q[(size_t)row * (D / 4) + i] : float4{0, 0, 0, 0};
    qr[i].x *= qscale;
    qr[i].y *= qscale;
    qr[i].z *= qscale;
    qr[i].w *= qscale;
    acc[i] = float4{0, 0, 0, 0};
  }
  float m = -1e30f, l = 0.f;

  const int stop = causal ? min(n, (int)(blockIdx.x + 1) * TPB) : n;
  for (int j0 = 0; j0 < stop; j0 += BK) {
    for (int t = threadIdx.x; t < BK * D / 4; t += TPB) {
      const int r = t / (D / 4), c = t % (D / 4);
      if (j0 + r < n) {
        ks[r][c] = k[(size_t)(j0 + r) * (D / 4) + c];
        vs[r][c] = v[(size_t)(j0 + r) * (D / 4) + c];
      }
    }
    __syncthreads();
    const int lim = causal ? min(BK, row + 1 - j0) : BK;
    for (int j = 0; j < lim && j0 + j < n; j++) {
      float s = 0.f;
      for (int i = 0; i < D / 4; i++)
        s += qr[i].x * ks[j][i].x + qr[i].y * ks[j][i].y + qr[i].z * ks[j][i].z +
             qr[i].w * ks[j][i].w;
      const float mn = fmaxf(m, s), a = __expf(m - mn), p = __expf(s - mn);
      for (int i = 0; i < D / 4; i++) {
        acc[i].x = acc[i].x * a + p * vs[j][i].x;
        acc[i].y = acc[i].y * a + p * vs[j][i].y;
        acc[i].z = acc[i].z * a + p * vs[j][i].z;
        acc[i].w = acc[i].w * a + p * vs[j][i].w;
      }
      l = l * a + p;
      m = mn;
    }
    __syncthreads();
  }
  if (row < n) {
    for (int i = 0; i < D / 4; i++)
      o[(size_t)row * (D / 4) + i] = float4{acc[i].x / l, acc[i].y / l, acc[i].z / l, acc[i].w / l};
    L[(size_t)blockIdx.y * n + row] = m + logf(l);
  }
}

void run_regs(float* o, float* L, const float* q, const float* k, const float* v, int nbh, int n,
              bool causal) {
  dim3 grid((n + TPB - 1) / TPB, nbh);
  if (causal)
    attn_regs<true>
        <<<grid, TPB>>>((const float4*)q, (const float4*)k, (const float4*)v, (float4*)o, L, n);
  else
    attn_regs<false>
        <<<grid, TPB>>>((const float4*)q, (const float4*)k, (const float4*)v, (float4*)o, L, n);
  CK(cudaGetLastError());
}

#ifndef N
#define N 2048
#endif
int main() {
  const int nbh = 16, reps = 20;
  const size_t count = (size_t)nbh * N * D;
  std::vector<float> host(count);
  for (auto& x : host) x = (float)std::rand() / RAND_MAX * 2.f - 1.f;
  float *q, *k, *v, *o, *L;
  for (float** p : {&q, &k, &v, &o}) CK(cudaMalloc(p, count * sizeof(float)));
  CK(cudaMalloc(&L, nbh * N * sizeof(float)));
  for (float* p : {q, k, v})
    CK(cudaMemcpy(p, host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  for (bool causal : {false, true}) {
    run_regs(o, L, q, k, v, nbh, N, causal);  // warm-up
    CK(cudaDeviceSynchronize());
    auto t0 = std::chrono::steady_clock::now();
    for (int i = 0; i < reps; i++) run_regs(o, L, q, k, v, nbh, N, causal);
    CK(cudaDeviceSynchronize());
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count() / reps;
    std::printf("causal=%d  %.3f ms  %.1f GFLOP/s\n", causal, s * 1e3,
                4.0 * nbh * N * N * D / s / 1e9 / (causal ? 2 : 1));
  }
}

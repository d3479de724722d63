#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <vector>

template <int D>
__device__ float dot(const float* a, const float* b) {
  float s = 0.f;
  for (int i = 0; i < D; ++i) s += a[i] * b[i];
  return s;
}

template <int D, bool CAUSAL>
__global__ void sdpa(const float* q, const float* k, const float* v, float* o, int H, int T,
                     float scale) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int h = blockIdx.y % H, b = blockIdx.y / H;
  if (t >= T) return;
  const auto row = [&](int i) { return ((b * T + i) * H + h) * D; };
  float m = -INFINITY, l = 0.f, acc[D] = {};
  for (int j = 0; j < (CAUSAL ? t + 1 : T); ++j) {
    const float s = dot<D>(q + row(t), k + row(j)) * scale;
    const float mn = fmaxf(m, s), a = expf(m - mn), p = expf(s - mn);
    l = l * a + p;
    for (int d = 0; d < D; ++d) acc[d] = acc[d] * a + p * v[row(j) + d];
    m = mn;
  }
  for (int d = 0; d < D; ++d) o[row(t) + d] = acc[d] / l;
}

// host reference, tensors are B,T,H,D
void sdpa_ref(const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v,
              std::vector<float>& o, int B, int T, int H, int D, bool causal) {
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h) {
        std::vector<double> w(T, 0.0);
        double sum = 0;
        const int n = causal ? t + 1 : T;
        for (int j = 0; j < n; ++j) {
          double s = 0;
          for (int d = 0; d < D; ++d)
            s += q[((b * T + t) * H + h) * D + d] * k[((b * T + j) * H + h) * D + d];
          sum += w[j] = std::exp(s / std::sqrt(double(D)));
        }
        for (int d = 0; d < D; ++d) {
          double a = 0;
          for (int j = 0; j < n; ++j) a += w[j] * v[((b * T + j) * H + h) * D + d];
          o[((b * T + t) * H + h) * D + d] = float(a / sum);
        }
      }
}

template <bool CAUSAL>
bool run_test(int B, int T, int H) {
  constexpr int D = 32;
  const size_t n = size_t(B) * T * H * D;
  std::vector<float> hq(n), hk(n), hv(n), ho(n), ref(n);
  for (size_t i = 0; i < n; ++i)
    hq[i] = std::sin(i), hk[i] = std::cos(i), hv[i] = std::sin(2.f * i);
  float *q, *k, *v, *o;
  cudaMalloc(&q, n * 4);
  cudaMalloc(&k, n * 4);
  cudaMalloc(&v, n * 4);
  cudaMalloc(&o, n * 4);
  cudaMemcpy(q, hq.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(k, hk.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(v, hv.data(), n * 4, cudaMemcpyHostToDevice);
  dim3 grid((T + 31) / 32, B * H);
  sdpa<D, CAUSAL><<<grid, 32>>>(q, k, v, o, H, T, 1.f / std::sqrt(float(D)));
  cudaMemcpy(ho.data(), o, n * 4, cudaMemcpyDeviceToHost);
  sdpa_ref(hq, hk, hv, ref, B, T, H, D, CAUSAL);
  for (size_t i = 0; i < n; ++i)
    if (std::fabs(ho[i] - ref[i]) > 1e-3) return false;
  return true;
}

int main() {
  bool ok = run_test<false>(2, 77, 3) && run_test<true>(1, 128, 4);
  std::puts(ok ? "PASS" : "FAIL");
  return ok ? 0 : 1;
}

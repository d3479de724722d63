#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <cstdio>

// Multi-query attention (Shazeer 2019): all heads share one K and one V.
// q, o: [batch, seq, heads, dim]   k, v: [batch, seq, dim]   fp32
//
// A tile of 8 threads owns one (query, head); a block has 32 consecutive (query, head) pairs of the
// same sequence, which read the same keys: K and V rows come from L1.

namespace cg = cooperative_groups;

namespace mqa {

enum class Mask : int { Full = 0, LowerTriangular = 1 };

struct Config {
  int batch;
  int seq;
  int heads;
  Mask mask;
};

constexpr int kLanes = 8;
constexpr int kPairs = 32;

template <int Dim>
__global__ void forward_kernel(Config cfg, const float* q, const float* k, const float* v, float* o,
                               float sqrt_dim) {
  constexpr int kVec = Dim / 4 / kLanes;  // float4 per thread
  static_assert(kVec * 4 * kLanes == Dim, "Dim must be a multiple of 32");

  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<kLanes>(block);
  const int pair = blockIdx.x * kPairs + tile.meta_group_rank();
  if (pair >= cfg.seq * cfg.heads) return;
  const int t = pair / cfg.heads;

  const size_t q_off = ((size_t)blockIdx.y * cfg.seq * cfg.heads + pair) * Dim;
  const float4* k4 = reinterpret_cast<const float4*>(k + (size_t)blockIdx.y * cfg.seq * Dim);
  const float4* v4 = reinterpret_cast<const float4*>(v + (size_t)blockIdx.y * cfg.seq * Dim);
  const float4* q4 = reinterpret_cast<const float4*>(q + q_off);

  float4 qr[kVec], acc[kVec];
  for (int i = 0; i < kVec; ++i) {
    qr[i] = q4[i * kLanes + tile.thread_rank()];
    acc[i] = make_float4(0.f, 0.f, 0.f, 0.f);
  }

  float mx = -INFINITY, denom = 0.f;
  const int last = cfg.mask == Mask::LowerTriangular ? t : cfg.seq - 1;
  for (int s = 0; s <= last; ++s) {
    float dot = 0.f;
    for (int i = 0; i < kVec; ++i) {
      const float4 x = k4[(size_t)s * (Dim / 4) + i * kLanes + tile.thread_rank()];
      dot += qr[i].x * x.x + qr[i].y * x.y + qr[i].z * x.z + qr[i].w * x.w;
    }
    dot = cg::reduce(tile, dot, cg::plus<float>()) / sqrt_dim;

    if (dot > mx) {  // a new maximum: rescale what there is
      const float f = expf(mx - dot);
      denom *= f;
      for (int i = 0; i < kVec; ++i) {
        acc[i].x *= f;
        acc[i].y *= f;
        acc[i].z *= f;
        acc[i].w *= f;
      }
      mx = dot;
    }
    const float w = expf(dot - mx);
    denom += w;
    for (int i = 0; i < kVec; ++i) {
      const float4 x = v4[(size_t)s * (Dim / 4) + i * kLanes + tile.thread_rank()];
      acc[i].x += w * x.x;
      acc[i].y += w * x.y;
      acc[i].z += w * x.z;
      acc[i].w += w * x.w;
    }
  }

  float4* o4 = reinterpret_cast<float4*>(o + q_off);
  const float r = 1.f / denom;
  for (int i = 0; i < kVec; ++i)
    o4[i * kLanes + tile.thread_rank()] =
        make_float4(acc[i].x * r, acc[i].y * r, acc[i].z * r, acc[i].w * r);
}

template <int Dim>
cudaError_t forward(const Config& cfg, const float* q, const float* k, const float* v, float* o,
                    cudaStream_t stream = 0) {
  const dim3 grid((cfg.seq * cfg.heads + kPairs - 1) / kPairs, cfg.batch);
  forward_kernel<Dim><<<grid, kPairs * kLanes, 0, stream>>>(cfg, q, k, v, o, sqrtf(float(Dim)));
  return cudaPeekAtLastError();
}

template cudaError_t forward<64>(const Config&, const float*, const float*, const float*, float*,
                                 cudaStream_t);
template cudaError_t forward<128>(const Config&, const float*, const float*, const float*, float*,
                                  cudaStream_t);

}  // namespace mqa

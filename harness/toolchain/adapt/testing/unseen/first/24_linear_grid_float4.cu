#include <cuda_runtime.h>
#include <cstdint>

namespace attn {
namespace detail {

constexpr int ROWS_PER_CTA = 8;  // one warp per row
constexpr int KEYS_PER_TILE = 32;

__device__ inline float dot4(const float4& a, const float4& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// 1-D grid: work item = (tile, batch, head); tiles are walked from the last one down, so that
// the long rows of a causal problem start first.
// Layout BSHD. A lane handles one key of the tile for S = QK^T and HD/32 columns for O = PV.
template <int HD>
__global__ void fwd(float* __restrict__ dst, const float* __restrict__ src_q,
                    const float* __restrict__ src_k, const float* __restrict__ src_v,
                    const int32_t* __restrict__ kv_lens /* nullable */, int nb, int nq, int nk,
                    int nh, int nh_kv, int causal, float sc) {
  __shared__ float4 tile_k[KEYS_PER_TILE][HD / 4 + 1];
  __shared__ float tile_v[KEYS_PER_TILE][HD];
  __shared__ float4 tile_q[ROWS_PER_CTA][HD / 4];

  const int n_tiles = (nq + ROWS_PER_CTA - 1) / ROWS_PER_CTA;
  int id = blockIdx.x;
  const int ih = id % nh;
  id /= nh;
  const int ib = id % nb;
  id /= nb;
  const int it = n_tiles - 1 - id;

  const int warp = threadIdx.y, lane = threadIdx.x;
  const int iq = it * ROWS_PER_CTA + warp;
  const int ikv = ih / (nh / nh_kv);
  const int len = kv_lens ? kv_lens[ib] : nk;
  const int tid = warp * 32 + lane;

  for (int c = lane; c < HD / 4; c += 32) {
    tile_q[warp][c] =
        iq < nq
            ? reinterpret_cast<const float4*>(src_q + (((int64_t)ib * nq + iq) * nh + ih) * HD)[c]
            : make_float4(0.f, 0.f, 0.f, 0.f);
  }

  float o[HD / 32];
  for (int i = 0; i < HD / 32; ++i) o[i] = 0.f;
  float mx = -1e30f, den = 0.f;

  // queries are the last nq positions of the sequence
  const int my_end = causal ? min(len, iq + (nk - nq) + 1) : len;
  const int cta_end = causal ? min(len, it * ROWS_PER_CTA + ROWS_PER_CTA + (nk - nq)) : len;

  for (int k0 = 0; k0 < cta_end; k0 += KEYS_PER_TILE) {
    __syncthreads();
    for (int e = tid; e < KEYS_PER_TILE * (HD / 4); e += ROWS_PER_CTA * 32) {
      const int kk = e / (HD / 4), c = e % (HD / 4);
      float4 fk = make_float4(0.f, 0.f, 0.f, 0.f), fv = fk;
      if (k0 + kk < len) {
        const int64_t off = (((int64_t)ib * nk + k0 + kk) * nh_kv + ikv) * HD;
        fk = reinterpret_cast<const float4*>(src_k + off)[c];
        fv = reinterpret_cast<const float4*>(src_v + off)[c];
      }
      tile_k[kk][c] = fk;
      tile_v[kk][4 * c + 0] = fv.x;
      tile_v[kk][4 * c + 1] = fv.y;
      tile_v[kk][4 * c + 2] = fv.z;
      tile_v[kk][4 * c + 3] = fv.w;
    }
    __syncthreads();

    float s = 0.f;
    for (int c = 0; c < HD / 4; ++c) s += dot4(tile_q[warp][c], tile_k[lane][c]);
    s = k0 + lane < my_end ? s * sc : -1e30f;

    float tmax = s;
    for (int w = 16; w; w >>= 1) tmax = fmaxf(tmax, __shfl_xor_sync(~0u, tmax, w));
    const float nmx = fmaxf(mx, tmax);
    const float fix = __expf(mx - nmx);
    const float p = k0 + lane < my_end ? __expf(s - nmx) : 0.f;
    float psum = p;
    for (int w = 16; w; w >>= 1) psum += __shfl_xor_sync(~0u, psum, w);
    den = den * fix + psum;
    mx = nmx;
    for (int i = 0; i < HD / 32; ++i) o[i] *= fix;
    for (int j = 0; j < KEYS_PER_TILE; ++j) {
      const float pj = __shfl_sync(~0u, p, j);
      for (int i = 0; i < HD / 32; ++i) o[i] += pj * tile_v[j][i * 32 + lane];
    }
  }

  if (iq < nq) {
    const float inv = den > 0.f ? 1.f / den : 0.f;
    for (int i = 0; i < HD / 32; ++i)
      dst[(((int64_t)ib * nq + iq) * nh + ih) * HD + i * 32 + lane] = o[i] * inv;
  }
}

}  // namespace detail

cudaError_t forward_f32(float* dst, const float* src_q, const float* src_k, const float* src_v,
                        const int32_t* kv_lens, int nb, int nq, int nk, int nh, int nh_kv, int hd,
                        int causal, float sc, cudaStream_t st) {
  const int n_tiles = (nq + detail::ROWS_PER_CTA - 1) / detail::ROWS_PER_CTA;
  const unsigned n_cta = (unsigned)n_tiles * nb * nh;
  const dim3 thr(32, detail::ROWS_PER_CTA);
  switch (hd) {
    case 32:
      detail::fwd<32><<<n_cta, thr, 0, st>>>(dst, src_q, src_k, src_v, kv_lens, nb, nq, nk, nh,
                                             nh_kv, causal, sc);
      break;
    case 64:
      detail::fwd<64><<<n_cta, thr, 0, st>>>(dst, src_q, src_k, src_v, kv_lens, nb, nq, nk, nh,
                                             nh_kv, causal, sc);
      break;
    case 128:
      detail::fwd<128><<<n_cta, thr, 0, st>>>(dst, src_q, src_k, src_v, kv_lens, nb, nq, nk, nh,
                                              nh_kv, causal, sc);
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace attn

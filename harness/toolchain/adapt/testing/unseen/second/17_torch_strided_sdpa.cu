#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include <cmath>
#include <limits>
#include <tuple>

// sdpa_forward(query, key, value, is_causal, scale=None) -> (output, logsumexp)
//
// query (B, H, L, E), key (B, Hk, S, E), value (B, Hk, S, Ev): any strides, as long as the last
// dimension is contiguous; transposed views of (B, L, H, E) do not need a copy.

namespace {

constexpr int kWarpsPerBlock = 4;

struct Strides3 {
  int64_t b, h, n;
};

Strides3 strides_of(const at::Tensor& t) { return {t.stride(0), t.stride(1), t.stride(2)}; }

template <typename scalar_t, typename accscalar_t>
__global__ void sdpa_kernel(const scalar_t* __restrict__ query, const scalar_t* __restrict__ key,
                            const scalar_t* __restrict__ value, scalar_t* __restrict__ output,
                            accscalar_t* __restrict__ logsumexp, Strides3 qs, Strides3 ks,
                            Strides3 vs, Strides3 os, int H, int group, int L, int S, int E, int Ev,
                            accscalar_t scale, bool is_causal) {
  extern __shared__ unsigned char smem_raw[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // per warp: E query elements (scaled), Ev accumulators
  accscalar_t* q_s = reinterpret_cast<accscalar_t*>(smem_raw) + warp * (E + Ev);
  accscalar_t* o_s = q_s + E;

  const int l = blockIdx.x * kWarpsPerBlock + warp;
  if (l >= L) return;
  const int h = blockIdx.y % H, b = blockIdx.y / H;
  const scalar_t* q = query + b * qs.b + h * qs.h + l * qs.n;
  const scalar_t* k = key + b * ks.b + (h / group) * ks.h;
  const scalar_t* v = value + b * vs.b + (h / group) * vs.h;

  for (int e = lane; e < E; e += 32) q_s[e] = static_cast<accscalar_t>(q[e]) * scale;
  for (int e = lane; e < Ev; e += 32) o_s[e] = 0;
  __syncwarp();

  const int visible = is_causal ? min(l + 1, S) : S;  // top-left aligned, as torch's is_causal
  accscalar_t running_max = -std::numeric_limits<accscalar_t>::infinity();
  accscalar_t running_sum = 0;
  for (int s0 = 0; s0 < visible; s0 += 32) {
    const int s = s0 + lane;
    accscalar_t logit = -std::numeric_limits<accscalar_t>::infinity();
    if (s < visible) {
      logit = 0;
      for (int e = 0; e < E; ++e) logit += q_s[e] * static_cast<accscalar_t>(k[s * ks.n + e]);
    }
    accscalar_t new_max = logit;
    for (int offset = 16; offset > 0; offset >>= 1)
      new_max = ::max(new_max, __shfl_xor_sync(0xffffffff, new_max, offset));
    new_max = ::max(new_max, running_max);

    const accscalar_t prob = std::exp(logit - new_max);
    const accscalar_t rescale = std::exp(running_max - new_max);
    accscalar_t sum = prob;
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    running_sum = running_sum * rescale + sum;
    running_max = new_max;

    const int count = min(32, visible - s0);
    for (int e = lane; e < Ev + 31 - (Ev + 31) % 32;
         e += 32) {  // whole warps: there are shuffles inside
      accscalar_t acc = e < Ev ? o_s[e] * rescale : accscalar_t(0);
      for (int j = 0; j < count; ++j) {
        const accscalar_t p = __shfl_sync(0xffffffff, prob, j);
        if (e < Ev) acc += p * static_cast<accscalar_t>(v[(s0 + j) * vs.n + e]);
      }
      if (e < Ev) o_s[e] = acc;
    }
  }

  scalar_t* o = output + b * os.b + h * os.h + l * os.n;
  for (int e = lane; e < Ev; e += 32) o[e] = static_cast<scalar_t>(o_s[e] / running_sum);
  if (lane == 0) logsumexp[(int64_t)blockIdx.y * L + l] = running_max + std::log(running_sum);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> sdpa_forward(const at::Tensor& query, const at::Tensor& key,
                                                const at::Tensor& value, bool is_causal,
                                                c10::optional<double> scale_ = c10::nullopt) {
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
              "sdpa_forward: expected 4-D tensors");
  TORCH_CHECK(query.stride(-1) == 1 && key.stride(-1) == 1 && value.stride(-1) == 1,
              "sdpa_forward: the last dimension must be contiguous");
  TORCH_CHECK(query.size(1) % key.size(1) == 0, "sdpa_forward: number of heads");
  const at::cuda::CUDAGuard guard(query.device());

  const int64_t B = query.size(0), H = query.size(1), L = query.size(2), E = query.size(3);
  const int64_t S = key.size(2), Ev = value.size(3);
  const double scale = scale_.has_value() ? *scale_ : 1.0 / std::sqrt(static_cast<double>(E));

  at::Tensor output = at::empty({B, H, L, Ev}, query.options());
  at::Tensor logsumexp = at::empty({B, H, L}, query.options().dtype(at::kFloat));
  const dim3 grid((L + kWarpsPerBlock - 1) / kWarpsPerBlock, B * H);
  const size_t smem = kWarpsPerBlock * (E + Ev) * sizeof(float);

  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, query.scalar_type(), "sdpa_forward", [&] {
        sdpa_kernel<scalar_t, float>
            <<<grid, kWarpsPerBlock * 32, smem, at::cuda::getCurrentCUDAStream()>>>(
                query.data_ptr<scalar_t>(), key.data_ptr<scalar_t>(), value.data_ptr<scalar_t>(),
                output.data_ptr<scalar_t>(), logsumexp.data_ptr<float>(), strides_of(query),
                strides_of(key), strides_of(value), strides_of(output), H, H / key.size(1), L, S, E,
                Ev, static_cast<float>(scale), is_causal);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      });
  return {output, logsumexp};
}

TORCH_LIBRARY(tiny_sdpa, m) {
  m.def(
      "forward(Tensor query, Tensor key, Tensor value, bool is_causal, float? scale=None) -> "
      "(Tensor, Tensor)",
      &sdpa_forward);
}

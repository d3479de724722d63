// Kernels for tests of bring.h: one thread a row, all keys in one KV tile. They differ in what they
// write, in what they declare, and in how their host code fails.
#include <attn_diag/kernels/bring.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdexcept>

namespace {

using attn_diag::Call;
using attn_diag::Tensor;

constexpr int kThreads = 32;
constexpr float kLog2E = 1.44269504f;

struct Pointers {
  float *o, *lse, *s, *m, *l, *p, *partial_o;  // any but o may be null
};

struct Writes {
  float lse_factor = 1.0f;
  float score_factor = 1.0f;
  bool normalised_partials = false;
  int skipped_key = -1;  // of the recorded S
  int skipped_row = -1;  // of o
  bool adds = false;     // to o
};

__device__ float to_float(float x) { return x; }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void store(float& to, float x) { to = x; }
__device__ void store(__half& to, float x) { to = __float2half(x); }
__device__ void add(float& to, float x) { to += x; }
__device__ void add(__half& to, float x) { to = __float2half(__half2float(to) + x); }

// Grid (B * H, ceil(Sq / kThreads)), block kThreads.
template <class Element, class Output>
__global__ void rows(const Element* q, const Element* k, const Element* v, Output* o, Pointers g,
                     int seqlen_q, int seqlen_k, int dim, float scale, bool causal, Writes w) {
  const long long head = blockIdx.x;
  const int row = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (row >= seqlen_q) return;
  const long long at = head * seqlen_q + row;
  const int keys = causal ? row + 1 : seqlen_k;
  const auto score = [&](int key) {
    float sum = 0.0f;
    for (int d = 0; d < dim; ++d)
      sum += to_float(q[at * dim + d]) * to_float(k[(head * seqlen_k + key) * dim + d]);
    return key < keys ? sum * scale : -INFINITY;
  };
  float m = -INFINITY, l = 0.0f;
  for (int key = 0; key < seqlen_k; ++key) m = fmaxf(m, score(key));
  for (int key = 0; key < seqlen_k; ++key) {
    const float s = score(key), p = expf(s - m);
    if (g.s != nullptr && key != w.skipped_key) g.s[at * seqlen_k + key] = s * w.score_factor;
    if (g.p != nullptr) g.p[at * seqlen_k + key] = p;
    l += p;
  }
  for (int d = 0; d < dim; ++d) {
    float sum = 0.0f;
    for (int key = 0; key < seqlen_k; ++key)
      sum += expf(score(key) - m) * to_float(v[(head * seqlen_k + key) * dim + d]);
    if (g.partial_o != nullptr) g.partial_o[at * dim + d] = w.normalised_partials ? sum / l : sum;
    if (w.adds)
      add(o[at * dim + d], sum / l);
    else if (row != w.skipped_row)
      store(o[at * dim + d], sum / l);
  }
  if (g.m != nullptr) g.m[at] = m * w.score_factor;
  if (g.l != nullptr) g.l[at] = l;
  if (g.lse != nullptr) g.lse[at] = (m + logf(l)) * w.lse_factor;
}

template <class Element, class Output = Element>
void launch(const Call& c, const Pointers& g, const Writes& w) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(c.batch() * c.heads(), (c.seqlen_q() + kThreads - 1) / kThreads);
  config.blockDim = dim3(kThreads);
  config.stream = c.stream();
  cudaLaunchKernelEx(&config, rows<Element, Output>, static_cast<const Element*>(c.q<Element>()),
                     static_cast<const Element*>(c.k<Element>()),
                     static_cast<const Element*>(c.v<Element>()), c.o<Output>(), g, c.seqlen_q(),
                     c.seqlen_k(), c.head_dim(), c.scale(), c.is_causal(), w);
}

void attend(const Call& c, Pointers g, const Writes& w) {
  if (c.dtype() == attn_diag::DType::kFp16) return launch<__half>(c, g, w);
  launch<float>(c, g, w);
}

Pointers every_stage(const Call& c) {
  return {nullptr,
          c.lse(),
          c.stage(Tensor::kS),
          c.stage(Tensor::kM),
          c.stage(Tensor::kL),
          c.stage(Tensor::kP),
          c.stage(Tensor::kPartialO)};
}
Pointers no_stage(float* lse) {
  return {nullptr, lse, nullptr, nullptr, nullptr, nullptr, nullptr};
}

void right(const Call& c) { attend(c, every_stage(c), {}); }
void base2_lse(const Call& c) { attend(c, no_stage(c.lse()), {kLog2E, 1.0f}); }
void no_lse(const Call& c) { attend(c, no_stage(nullptr), {}); }
void base2_scores(const Call& c) { attend(c, every_stage(c), {1.0f, kLog2E}); }
void unscaled_scores(const Call& c) { attend(c, every_stage(c), {1.0f, 1.0f / c.scale()}); }
void normalised(const Call& c) { attend(c, every_stage(c), {1.0f, 1.0f, true}); }
void normalised_without_l(const Call& c) {
  Pointers g = no_stage(c.lse());
  g.partial_o = c.stage(Tensor::kPartialO);
  attend(c, g, {1.0f, 1.0f, true});
}
void wide_output(const Call& c) {
  const bool bf16 = c.dtype() == attn_diag::DType::kBf16;
  bf16 ? launch<__nv_bfloat16, float>(c, no_stage(c.lse()), {})
       : launch<__half, float>(c, no_stage(c.lse()), {});
}
void wide_output_skips_row(const Call& c) {
  launch<__half, float>(c, no_stage(c.lse()), {1.0f, 1.0f, false, -1, 3});
}
void adds_to_wide_output(const Call& c) {
  c.zero_o();
  launch<__half, float>(c, no_stage(c.lse()), {1.0f, 1.0f, false, -1, -1, true});
}
void adds_to_output(const Call& c) {
  c.zero_o();
  launch<__half>(c, no_stage(c.lse()), {1.0f, 1.0f, false, -1, -1, true});
}
void skips_key(const Call& c) { attend(c, every_stage(c), {1.0f, 1.0f, false, 1}); }

void throws(const Call&) { throw std::runtime_error("no plan for this shape"); }
void throws_number(const Call&) { throw 7; }
void refuses(const Call& c) { c.refuse("batch times heads must be even"); }
void does_nothing(const Call&) {}
void wrong_element(const Call& c) { c.q<double>(); }
void undeclared_stage(const Call& c) { c.stage(Tensor::kS); }
void too_many_threads(const Call& c) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(4096);
  cudaLaunchKernelEx(&config, rows<float, float>, static_cast<const float*>(c.q<float>()),
                     static_cast<const float*>(c.k<float>()),
                     static_cast<const float*>(c.v<float>()), c.o<float>(), no_stage(nullptr), 1, 1,
                     1, 1.0f, false, Writes{});
}

constexpr attn_diag::TileShape kOneTile = {kThreads, 4096};
const attn_diag::Few<Tensor> kStages = {Tensor::kS, Tensor::kM, Tensor::kL, Tensor::kP,
                                        Tensor::kPartialO};

}  // namespace

// clang-format off
ATTN_DIAG_EXPORT(
    {.name = "right", .summary = "writes what it declares", .call = right,
     .dtypes = fp16 | fp32, .max_head_dim = 128, .masks = none | causal,
     .seqlen_q_multiple_of = 2, .max_seqlen_k = 4096, .tile = kOneTile, .stages = kStages},
    {.name = "base2-lse", .call = base2_lse, .dtypes = fp32, .tile = kOneTile, .lse = Lse::kBase2},
    {.name = "base2-lse-undeclared", .call = base2_lse, .dtypes = fp32, .tile = kOneTile},
    {.name = "no-lse", .call = no_lse, .dtypes = fp32, .tile = kOneTile, .lse = Lse::kNone},
    {.name = "no-lse-undeclared", .call = no_lse, .dtypes = fp32, .tile = kOneTile},
    {.name = "base2-scores", .call = base2_scores, .dtypes = fp32, .tile = kOneTile,
     .stages = kStages, .scores = Scores::kBase2},
    {.name = "base2-scores-undeclared", .call = base2_scores, .dtypes = fp32, .tile = kOneTile,
     .stages = kStages},
    {.name = "unscaled-scores", .call = unscaled_scores, .dtypes = fp32, .tile = kOneTile,
     .stages = kStages, .scores = Scores::kUnscaled},
    {.name = "normalised", .call = normalised, .dtypes = fp32, .tile = kOneTile,
     .stages = kStages, .normalised_partials = true},
    {.name = "normalised-undeclared", .call = normalised, .dtypes = fp32, .tile = kOneTile,
     .stages = kStages},
    {.name = "normalised-without-l", .call = normalised_without_l, .dtypes = fp32,
     .tile = kOneTile, .stages = {Tensor::kPartialO}, .normalised_partials = true},
    {.name = "skips-key", .call = skips_key, .dtypes = fp32, .tile = kOneTile, .stages = kStages},
    {.name = "wide-output", .call = wide_output, .dtypes = fp16 | bf16, .tile = kOneTile},
    {.name = "wide-output-skips-row", .call = wide_output_skips_row, .tile = kOneTile},
    {.name = "adds-to-wide-output", .call = adds_to_wide_output, .tile = kOneTile},
    {.name = "adds-to-output", .call = adds_to_output, .tile = kOneTile},
    {.name = "throws", .call = throws, .dtypes = fp32},
    {.name = "throws-number", .call = throws_number, .dtypes = fp32},
    {.name = "refuses", .call = refuses, .dtypes = fp32},
    {.name = "does-nothing", .call = does_nothing, .dtypes = fp32},
    {.name = "wrong-element", .call = wrong_element, .dtypes = fp32},
    {.name = "undeclared-stage", .call = undeclared_stage, .dtypes = fp32},
    {.name = "too-many-threads", .call = too_many_threads, .dtypes = fp32});
// clang-format on

// A user's kernel, as small as one can be: fp32, one thread per query, all keys in one KV tile, up to 4096.
//
// Grid (ceil(Sq / kThreads), H, B), block kThreads; workspace: the scores, B*H*Sq*Sk floats.
#include <attn_diag/kernels/adapter.h>
#include <cuda_runtime.h>

#include <cstdio>

namespace {

using attn_diag::Geometry;
using attn_diag::NoTap;
using attn_diag::Problem;
using attn_diag::RunRequest;
using attn_diag::Stage;
using attn_diag::Status;
using attn_diag::Tensor;

constexpr int kThreads = 64;
constexpr int kMaxKeys = 4096;
constexpr int kMaxDim = 128;

struct Pointers {
  const float* q;  // (B, H, Sq, D)
  const float* k;  // (B, H, Sk, D)
  const float* v;  // (B, H, Sk, Dv)
  float* o;        // (B, H, Sq, Dv)
  float* lse;      // (B, H, Sq)
  float* scores;   // (B, H, Sq, Sk)
};

template <class Tap>
__global__ void rowwise(Problem p, Pointers g, Tap tap) {
  const int query = blockIdx.x * kThreads + threadIdx.x, h = blockIdx.y, b = blockIdx.z;
  if (query >= p.seqlen_q) return;
  const long long head = static_cast<long long>(b) * p.heads + h;
  const float* gQ = g.q + (head * p.seqlen_q + query) * p.head_dim;  // (D)
  const float* gK = g.k + head * p.seqlen_k * p.head_dim;            // (Sk, D)
  const float* gV = g.v + head * p.seqlen_k * p.head_dim_v;          // (Sk, Dv)
  float* gS = g.scores + (head * p.seqlen_q + query) * p.seqlen_k;   // (Sk)

  float m = -INFINITY;
  for (int key = 0; key < p.seqlen_k; ++key) {
    float s = 0.0f;
    for (int d = 0; d < p.head_dim; ++d) s += gQ[d] * gK[key * p.head_dim + d];
    s *= p.softmax_scale;
    tap.template visit<Tensor::kS>(s, b, h, query, key);
    gS[key] = s;
    m = fmaxf(m, s);
  }
  if (tap.ends_after(Stage::kQk)) return;
  tap.template visit<Tensor::kM>(m, b, h, query, 0);

  float l = 0.0f;
  float rO[kMaxDim] = {};  // (Dv)
  for (int key = 0; key < p.seqlen_k; ++key) {
    float weight = expf(gS[key] - m);
    l += weight;
    tap.template visit<Tensor::kP>(weight, b, h, query, key);
    for (int d = 0; d < p.head_dim_v; ++d) rO[d] += weight * gV[key * p.head_dim_v + d];
  }
  tap.template visit<Tensor::kL>(l, b, h, query, 0);
  if (tap.ends_after(Stage::kSoftmax)) return;

  float* gO = g.o + (head * p.seqlen_q + query) * p.head_dim_v;  // (Dv)
  for (int d = 0; d < p.head_dim_v; ++d)
    tap.template visit<Tensor::kPartialO>(rO[d], b, h, query, 0, d);
  if (tap.ends_after(Stage::kPv)) return;

  for (int d = 0; d < p.head_dim_v; ++d) {
    float o = rO[d] / l;
    tap.template visit<Tensor::kO>(o, b, h, query, d);
    gO[d] = o;
  }
  float lse = m + logf(l);
  tap.template visit<Tensor::kLse>(lse, b, h, query);
  g.lse[head * p.seqlen_q + query] = lse;
}

constexpr attn_diag::TileShape kTiles[] = {{kThreads, kMaxKeys}};

Status refuse(char* error, std::size_t capacity, const char* why) {
  std::snprintf(error, capacity, "rowwise: %s", why);
  return Status::kUnsupported;
}

Status plan(const Problem& p, attn_diag::TileShape, std::int32_t, Geometry* geometry, char* error,
            std::size_t capacity) {
  if (p.dtype != attn_diag::DType::kFp32) return refuse(error, capacity, "fp32 only");
  if (p.mask.kind != attn_diag::MaskKind::kNone) return refuse(error, capacity, "no masks");
  if (p.kv_heads != p.heads) return refuse(error, capacity, "no shared kv heads");
  if (p.layout != attn_diag::Layout::kBHSD) return refuse(error, capacity, "BHSD only");
  if (p.seqlen_k > kMaxKeys) return refuse(error, capacity, "up to 4096 keys");
  if (p.head_dim_v > kMaxDim) return refuse(error, capacity, "head_dim_v up to 128");
  *geometry = Geometry{};
  geometry->tile = kTiles[0];
  geometry->frame = attn_diag::Frame::kTile;
  return Status::kOk;
}

attn_diag::Arithmetic arithmetic(const Problem& p, const Geometry&) {
  attn_diag::Arithmetic declared;
  declared.output = p.dtype;
  return declared;
}

std::size_t workspace_bytes(const Problem& p, const Geometry&) {
  return sizeof(float) * p.batch * p.heads * p.seqlen_q * p.seqlen_k;
}

template <class Tap>
Status launch(const RunRequest& r, const Tap& tap) {
  const Pointers pointers = {static_cast<const float*>(r.q),
                             static_cast<const float*>(r.k),
                             static_cast<const float*>(r.v),
                             static_cast<float*>(r.o),
                             r.lse,
                             static_cast<float*>(r.workspace)};
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3((r.problem.seqlen_q + kThreads - 1) / kThreads, r.problem.heads, r.problem.batch);
  config.blockDim = dim3(kThreads);
  config.stream = static_cast<cudaStream_t>(r.stream);
  const cudaError_t launched = cudaLaunchKernelEx(&config, rowwise<Tap>, r.problem, pointers, tap);
  if (launched == cudaSuccess) return Status::kOk;
  std::snprintf(r.error, r.error_capacity, "rowwise: %s", cudaGetErrorString(launched));
  return Status::kLaunchFailed;
}

Status run(const RunRequest& r) {
  return r.gate == attn_diag::Gate::kFull ? launch(r, NoTap{})
                                          : launch(r, attn_diag::StageTap{r.gate, r.taps});
}

constexpr attn_diag::KernelInfo describe() {
  attn_diag::KernelInfo info;
  info.name = "rowwise";
  info.summary = "one thread per query, no tiling";
  info.tiles = kTiles;
  info.num_tiles = 1;
  info.gates = 0x1f;
  for (attn_diag::TensorExposure& exposure : info.exposure) exposure.exposed = true;
  for (Tensor tensor : {Tensor::kRunningM, Tensor::kRunningL, Tensor::kRunningO, Tensor::kMergedL,
                        Tensor::kMergedO})
    info.exposure[static_cast<int>(tensor)] = {false, "rowwise has one tile and no splits"};
  info.plan = plan;
  info.arithmetic = arithmetic;
  info.workspace_bytes = workspace_bytes;
  info.run = run;
  return info;
}

constexpr attn_diag::KernelInfo kKernel = describe();
constexpr attn_diag::KernelLibrary kLibrary = {attn_diag::kKernelAbiVersion, 1, &kKernel};

}  // namespace

extern "C" const attn_diag::KernelLibrary* attn_diag_kernel_library() { return &kLibrary; }

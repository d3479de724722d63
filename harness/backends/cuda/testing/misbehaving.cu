// Attention in its plainest form, a block per query, one kernel per flaw: what backend cuda must find,
// and how it must say it. fp32, no mask, no taps but one.
#include <cstdint>

#include "attn_diag/kernels/adapter.h"
#include "common/launch.h"

namespace attn_diag {
namespace {

enum class Flaw {
  kNone,
  kSkipsCell,       // o(0, 0, 2, 1) is not written
  kVisitsTwice,     // two threads record lse at once; it alone has taps
  kWritesBehind,    // one element behind o
  kWritesBefore,    // one element before lse
  kMoves,           // what a query gives depends on when its block runs
  kIllegalAddress,  // a store that no memory answers
  kLateAddress,     // the same, and the launch is not waited for
  kTraps,
  kTooMuchShared,  // more shared memory than any GPU gives a block
};

constexpr int kThreads = 32;
constexpr std::size_t kHuge = std::size_t{1} << 20;
constexpr TileShape kTile = {1, 1};

// The memory that does not answer is far behind everything.
__device__ void store_astray(float* o) { o[std::int64_t{1} << 45] = 1.0f; }

template <Flaw kFlaw>
__global__ void attend(const RunRequest r, unsigned* ticket) {
  const Problem& p = r.problem;
  const int b = static_cast<int>(blockIdx.z), h = static_cast<int>(blockIdx.y);
  const int i = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
  const Strides sq = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim);
  const Strides sk = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim);
  const Strides sv = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim_v);
  const Strides so = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
  const int g = h / group_size(p);
  const float* gQ = static_cast<const float*>(r.q) + b * sq.batch + h * sq.head + i * sq.seq;
  const float* gK = static_cast<const float*>(r.k) + b * sk.batch + g * sk.head;
  const float* gV = static_cast<const float*>(r.v) + b * sv.batch + g * sv.head;
  float* gO = static_cast<float*>(r.o) + b * so.batch + h * so.head + i * so.seq;

  const auto score = [&](int key) {
    float s = 0;
    for (int d = 0; d < p.head_dim; ++d) s += gQ[d] * gK[key * sk.seq + d];
    return s * p.softmax_scale;
  };
  float m = score(0);
  for (int key = 1; key < p.seqlen_k; ++key) m = fmaxf(m, score(key));
  float l = 0;
  for (int key = 0; key < p.seqlen_k; ++key) l += __expf(score(key) - m);
  float late = 0;
  if constexpr (kFlaw == Flaw::kMoves) {
    if (lane == 0) late = static_cast<float>(atomicAdd(ticket, 1u) % 4096u);
    late = __shfl_sync(0xffffffffu, late, 0) * 0x1p-40f;
  }
  for (int d = lane; d < p.head_dim_v; d += kThreads) {
    float o = 0;
    for (int key = 0; key < p.seqlen_k; ++key) o += __expf(score(key) - m) * gV[key * sv.seq + d];
    if (kFlaw == Flaw::kSkipsCell && b == 0 && h == 0 && i == 2 && d == 1) continue;
    gO[d] = o / l + late;
  }
  const std::int64_t row = (std::int64_t{b} * p.heads + h) * p.seqlen_q + i;
  float lse = m + logf(l);
  if constexpr (kFlaw == Flaw::kVisitsTwice) {
    const StageTap tap{Gate::kReduce, r.taps};
    if (lane < 2) tap.template visit<Tensor::kLse>(lse, b, h, i);
  }
  if (lane == 0) r.lse[row] = lse;
  if (lane != 0 || row != 0) return;
  if constexpr (kFlaw == Flaw::kWritesBehind)
    static_cast<float*>(r.o)[std::int64_t{p.batch} * p.heads * p.seqlen_q * p.head_dim_v] = 1.0f;
  if constexpr (kFlaw == Flaw::kWritesBefore) r.lse[-1] = 1.0f;
  if constexpr (kFlaw == Flaw::kIllegalAddress || kFlaw == Flaw::kLateAddress) store_astray(gO);
#if defined(__CUDACC__)
  if constexpr (kFlaw == Flaw::kTraps) __trap();
#endif
}

template <Flaw kFlaw>
Status run(const RunRequest& request) {
  RunRequest r = request;
  if constexpr (kFlaw == Flaw::kLateAddress) r.synchronize = false;
  const dim3 grid(r.problem.seqlen_q, r.problem.heads, r.problem.batch);
  return launch(r, "misbehaving", attend<kFlaw>, grid, dim3(kThreads),
                kFlaw == Flaw::kTooMuchShared ? kHuge : 0, r, static_cast<unsigned*>(r.workspace));
}

Status plan(const Problem& p, TileShape tile, std::int32_t, Geometry* geometry, char* error,
            std::size_t capacity) {
  if (p.dtype != DType::kFp32 || p.mask.kind != MaskKind::kNone)
    return fail(Status::kUnsupported, error, capacity, "fp32 without a mask is all there is");
  *geometry = Geometry{};
  geometry->tile = tile;
  geometry->tiles_per_split = ceil_div(p.seqlen_k, tile.block_n);
  return Status::kOk;
}

Arithmetic arithmetic(const Problem&, const Geometry&) {
  Arithmetic a;
  a.output = DType::kFp32;
  return a;
}

std::size_t workspace_bytes(const Problem&, const Geometry&) { return sizeof(unsigned); }

template <Flaw kFlaw>
constexpr KernelInfo describe(const char* name) {
  KernelInfo info;
  info.name = name;
  info.summary = "one flaw, for tests";
  info.tiles = &kTile;
  info.num_tiles = 1;
  info.gates = 1u << static_cast<int>(kFlaw == Flaw::kVisitsTwice ? Gate::kReduce : Gate::kFull);
  for (TensorExposure& exposure : info.exposure) exposure.exempt_reason = "built without taps";
  info.plan = plan;
  info.arithmetic = arithmetic;
  info.workspace_bytes = workspace_bytes;
  info.run = run<kFlaw>;
  return info;
}

constexpr KernelInfo kKernels[] = {
    describe<Flaw::kNone>("right"),
    describe<Flaw::kSkipsCell>("skips-cell"),
    describe<Flaw::kVisitsTwice>("visits-twice"),
    describe<Flaw::kWritesBehind>("writes-behind"),
    describe<Flaw::kWritesBefore>("writes-before"),
    describe<Flaw::kMoves>("moves"),
    describe<Flaw::kIllegalAddress>("illegal-address"),
    describe<Flaw::kLateAddress>("late-address"),
    describe<Flaw::kTraps>("traps"),
    describe<Flaw::kTooMuchShared>("too-much-shared"),
};
constexpr KernelLibrary kLibrary = {kKernelAbiVersion, sizeof(kKernels) / sizeof(kKernels[0]),
                                    kKernels};

}  // namespace
}  // namespace attn_diag

extern "C" const attn_diag::KernelLibrary* attn_diag_kernel_library() {
  return &attn_diag::kLibrary;
}

// A kernel library for tests of the x-ray and of properties: attention in plain scalar C++, without taps,
// one kernel per flaw. Each flaw breaks at least one property.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <vector>

#include "attn_diag/kernels/adapter.h"
#include "harness/testing/scalar_kernel.h"

namespace attn_diag {
namespace {

using namespace scalar_kernel;

enum class Flaw {
  kNone,
  kSquareOnly,        // none: it refuses problems that are not square
  kMaskedCell,        // key 3 of query 5 of head 1 is masked, too
  kLeakingCell,       // key 9 of query 5 of head 0 is not masked
  kScaleTwice,        // S
  kNoLse,             // lse is 0: right weights, which do not go with it
  kDividesTwice,      // o / l^2
  kStartsAtConstant,  // o + 0.01
  kWeighsByV,         // keys with v[0] > 0 count twice
  kCountsZeroKey,     // l has one key more, of score 0
  kMarksSecondTile,   // weights of keys 16 to 31 are 2% larger
  kDropsTail,         // the last, partial tile
  kOnePastMask,       // one key beyond the mask
  kHeadZero,          // k of KV head 0 for all
  kMixesRows,         // q of the row before is mixed in
  kLeaks,             // masked keys weigh 1/1000
  kNaNKey,            // the score of key 7 is NaN
  kMoves,             // o grows by 1/100 in every second run
};

constexpr TileShape kTiles[] = {{16, 16}};

bool sees(const Problem& p, int query, int key) {
  return p.mask.kind == MaskKind::kNone ||
         key <=
             query + (p.mask.alignment == CausalAlignment::kTopLeft ? 0 : p.seqlen_k - p.seqlen_q);
}

struct RowIndex {
  int b, h, i;
};

// Score of a key, -inf where masked.
template <Flaw kFlaw>
float score(const RunRequest& r, const RowIndex& at_row, int key) {
  const Problem& p = r.problem;
  const auto [b, h, i] = at_row;
  const Strides sq = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim);
  const Strides sk = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim);
  const auto* q = static_cast<const float*>(r.q);
  const auto* k = static_cast<const float*>(r.k);
  const int g = kFlaw == Flaw::kHeadZero ? 0 : h / group_size(p);
  float x = 0;
  for (int d = 0; d < p.head_dim; ++d) {
    float from = q[at(sq, b, h, i, d)];
    if (kFlaw == Flaw::kMixesRows && i > 0) from += 0.01f * q[at(sq, b, h, i - 1, d)];
    x += from * k[at(sk, b, g, key, d)];
  }
  x *= kFlaw == Flaw::kScaleTwice ? p.softmax_scale * p.softmax_scale : p.softmax_scale;
  bool visible = sees(p, i, key);
  if (kFlaw == Flaw::kMaskedCell && h == 1 && i == 5 && key == 3) visible = false;
  if (kFlaw == Flaw::kLeakingCell && h == 0 && i == 5 && key == 9) visible = true;
  if (kFlaw == Flaw::kNaNKey && visible && key == 7) return std::nanf("");
  if (kFlaw == Flaw::kOnePastMask && key > 0 && sees(p, i, key - 1)) visible = true;
  if (kFlaw == Flaw::kLeaks && !visible) return x - 6.9f;
  return visible ? x : -kInfinity;
}

int runs = 0;

template <Flaw kFlaw>
void attend_row(const RunRequest& r, const RowIndex& row) {
  const Problem& p = r.problem;
  const auto [b, h, i] = row;
  const Strides sv = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim_v);
  const Strides so = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
  const auto* v = static_cast<const float*>(r.v);
  auto* o = static_cast<float*>(r.o);
  const int block = r.geometry.tile.block_n, dv = p.head_dim_v, g = h / group_size(p);
  float m = -kInfinity, l = 0;
  std::vector<float> sum(static_cast<std::size_t>(dv), 0.0f);
  int end_of_keys = p.seqlen_k;
  if (kFlaw == Flaw::kDropsTail && p.seqlen_k > block) end_of_keys -= p.seqlen_k % block;
  for (int begin = 0; begin < end_of_keys; begin += block) {
    const int end = std::min(begin + block, end_of_keys);
    float top = m;
    for (int key = begin; key < end; ++key) top = std::max(top, score<kFlaw>(r, row, key));
    if (top == -kInfinity) continue;  // exp(-inf - -inf) would be NaN
    const float rescale = std::exp(m - top);
    m = top;
    l *= rescale;
    for (float& x : sum) x *= rescale;
    for (int key = begin; key < end; ++key) {
      float w = std::exp(score<kFlaw>(r, row, key) - m);
      if (kFlaw == Flaw::kWeighsByV && v[at(sv, b, g, key, 0)] > 0) w *= 2;
      if (kFlaw == Flaw::kMarksSecondTile && begin == block) w *= 1.02f;
      l += w;
      for (int d = 0; d < dv; ++d) sum[static_cast<std::size_t>(d)] += w * v[at(sv, b, g, key, d)];
    }
  }
  if (kFlaw == Flaw::kCountsZeroKey && m != -kInfinity) l += std::exp(-m);
  const std::int64_t flat = (std::int64_t{b} * p.heads + h) * p.seqlen_q + i;
  r.lse[flat] = kFlaw == Flaw::kNoLse ? 0.0f : (l == 0 ? -kInfinity : m + std::log(l));
  const float factor = l == 0 ? 0.0f : 1.0f / (kFlaw == Flaw::kDividesTwice ? l * l : l);
  for (int d = 0; d < dv; ++d)
    o[at(so, b, h, i, d)] = sum[static_cast<std::size_t>(d)] * factor +
                            (kFlaw == Flaw::kStartsAtConstant ? 0.01f : 0.0f) +
                            (kFlaw == Flaw::kMoves && runs % 2 == 0 ? 0.01f : 0.0f);
}

template <Flaw kFlaw>
Status run(const RunRequest& r) {
  ++runs;
  for (int b = 0; b < r.problem.batch; ++b)
    for (int h = 0; h < r.problem.heads; ++h)
      for (int i = 0; i < r.problem.seqlen_q; ++i) attend_row<kFlaw>(r, {b, h, i});
  return Status::kOk;
}

Status plan_square(const Problem& p, TileShape tile, std::int32_t splits, Geometry* geometry,
                   char* error, std::size_t error_capacity) {
  if (p.seqlen_q == p.seqlen_k) return plan(p, tile, splits, geometry, error, error_capacity);
  std::snprintf(error, error_capacity, "only seqlen_q = seqlen_k.");
  return Status::kUnsupported;
}

template <Flaw kFlaw>
KernelInfo describe(const char* name) {
  KernelInfo info;
  info.name = name;
  info.summary = "scalar attention for tests";
  info.tiles = kTiles;
  info.num_tiles = 1;
  info.gates = 1u << static_cast<int>(Gate::kFull);
  for (TensorExposure& exposure : info.exposure) exposure.exempt_reason = "built without taps";
  info.plan = kFlaw == Flaw::kSquareOnly ? plan_square : plan;
  info.arithmetic = arithmetic;
  info.workspace_bytes = [](const Problem&, const Geometry&) { return std::size_t{0}; };
  info.run = run<kFlaw>;
  return info;
}

}  // namespace
}  // namespace attn_diag

const attn_diag::KernelLibrary* attn_diag_kernel_library() {
  using namespace attn_diag;
  static const KernelInfo kernels[] = {
      describe<Flaw::kNone>("right"),
      describe<Flaw::kSquareOnly>("square-only"),
      describe<Flaw::kMaskedCell>("masked-cell"),
      describe<Flaw::kLeakingCell>("leaking-cell"),
      describe<Flaw::kScaleTwice>("scale-twice"),
      describe<Flaw::kNoLse>("no-lse"),
      describe<Flaw::kDividesTwice>("divides-twice"),
      describe<Flaw::kStartsAtConstant>("starts-at-constant"),
      describe<Flaw::kWeighsByV>("weighs-by-v"),
      describe<Flaw::kCountsZeroKey>("counts-zero-key"),
      describe<Flaw::kMarksSecondTile>("marks-second-tile"),
      describe<Flaw::kDropsTail>("drops-tail"),
      describe<Flaw::kOnePastMask>("one-past-mask"),
      describe<Flaw::kHeadZero>("head-zero"),
      describe<Flaw::kMixesRows>("mixes-rows"),
      describe<Flaw::kLeaks>("leaks"),
      describe<Flaw::kNaNKey>("nan-key"),
      describe<Flaw::kMoves>("moves"),
  };
  static const KernelLibrary library = {kKernelAbiVersion, std::size(kernels), kernels};
  return &library;
}

const attn_diag::BuildInfo* attn_diag_build_info() {
  static const attn_diag::BuildInfo build = {0, nullptr, "any", "", "host", "", false, ""};
  return &build;
}

// A kernel library for tests of the harness: attention in plain scalar C++, one kernel per flaw.
// What the harness makes of a flaw can so be tested without the host executor or real kernels.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "attn_diag/kernels/adapter.h"
#include "harness/testing/scalar_kernel.h"

namespace attn_diag {
namespace {

using namespace scalar_kernel;

enum class Flaw {
  kNone,
  kDividesTwice,      // o / l^2
  kScaleTwice,        // S of head 1
  kOneKeyALittle,     // S of one key of each row is 1 % more
  kTwoFaults,         // S of one cell, and o / l^2
  kSkipsCell,         // S(0, 0, 2, 1) is not recorded, o(0, 0, 2, 1) not written
  kVisitsTwice,       // S(0, 1, 1, 0) is recorded twice
  kWritesOutside,     // one element behind o
  kDisturbedByTaps,   // wrong only without taps
  kUnsteady,          // wrong in every second run without taps
  kSeldomUnsteady,    // wrong in the third run without taps, and in every seventh from there
  kUnsteadyRounding,  // one cell of o is an ulp more in every second run without taps
  kNoTaps,            // gate full alone
  kExemptP,           // P is not exposed
  kImpreciseExp,      // P off by 10 ulp: less than what S may be off by
  kReadsWorkspace,    // adds a cell of the workspace that nobody wrote
  kReadsWorkspaceAndDividesTwice,
  kUnsteadyRoundingAndDividesTwice,
  kReadsPadding,  // adds 0 times what lies behind v
  kAddsToO,       // o is added to, and not cleared before
  kRefusesToLaunch,
};

constexpr TileShape kTiles[] = {{4, 4}, {2, 2}};

constexpr bool reads_workspace(Flaw flaw) {
  return flaw == Flaw::kReadsWorkspace || flaw == Flaw::kReadsWorkspaceAndDividesTwice;
}
constexpr bool rounds_unsteadily(Flaw flaw) {
  return flaw == Flaw::kUnsteadyRounding || flaw == Flaw::kUnsteadyRoundingAndDividesTwice;
}

bool sees(const Problem& p, int query, int key) {
  return p.mask.kind == MaskKind::kNone ||
         key <=
             query + (p.mask.alignment == CausalAlignment::kTopLeft ? 0 : p.seqlen_k - p.seqlen_q);
}

template <Flaw kFlaw, class Tap>
void attend(const RunRequest& r, const Tap& tap, bool second_run) {
  const Problem& p = r.problem;
  const auto* q = static_cast<const float*>(r.q);
  const auto* k = static_cast<const float*>(r.k);
  const auto* v = static_cast<const float*>(r.v);
  auto* o = static_cast<float*>(r.o);
  const Strides sq = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim);
  const Strides sk = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim);
  const Strides sv = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim_v);
  const Strides so = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
  const int block_n = r.geometry.tile.block_n, dv = p.head_dim_v;
  for (int b = 0; b < p.batch; ++b) {
    for (int h = 0; h < p.heads; ++h) {
      for (int i = 0; i < p.seqlen_q; ++i) {
        const int g = h / group_size(p);
        const bool marked_row = b == 0 && h == 0 && i == 2;
        float running_m = -kInfinity, running_l = 0;
        std::vector<float> running_o(static_cast<std::size_t>(dv), 0.0f);
        for (int t = 0; t < num_kv_tiles(p, r.geometry); ++t) {
          const int begin = t * block_n, end = std::min(begin + block_n, p.seqlen_k);
          std::vector<float> s(static_cast<std::size_t>(end - begin));
          float m = running_m;
          for (int key = begin; key < end; ++key) {
            float& x = s[static_cast<std::size_t>(key - begin)];
            x = 0;
            for (int d = 0; d < p.head_dim; ++d)
              x += q[at(sq, b, h, i, d)] * k[at(sk, b, g, key, d)];
            x = sees(p, i, key) ? x * p.softmax_scale : -kInfinity;
            if (kFlaw == Flaw::kScaleTwice && h == 1) x *= p.softmax_scale;
            if (kFlaw == Flaw::kOneKeyALittle && key == i % 3) x *= 1.01f;
            if (kFlaw == Flaw::kTwoFaults && marked_row && key == 1) x += 1.0f;
            if (!(kFlaw == Flaw::kSkipsCell && marked_row && key == 1))
              tap.template visit<Tensor::kS>(x, b, h, i, key);
            if (kFlaw == Flaw::kVisitsTwice && b == 0 && h == 1 && i == 1 && key == 0)
              tap.template visit<Tensor::kS>(x, b, h, i, key);
            m = std::max(m, x);
          }
          if (tap.ends_after(Stage::kQk)) continue;
          tap.template visit<Tensor::kM>(m, b, h, i, t);
          const float rescale = running_m == -kInfinity ? 0.0f : std::exp(running_m - m);
          running_m = m;
          float l = 0;
          for (int key = begin; key < end; ++key) {
            float& x = s[static_cast<std::size_t>(key - begin)];
            x = m == -kInfinity ? 0.0f : std::exp(x - m);
            if (kFlaw == Flaw::kImpreciseExp) x *= 1.0f + 0x1p-20f;
            tap.template visit<Tensor::kP>(x, b, h, i, key);
            l += x;
          }
          tap.template visit<Tensor::kL>(l, b, h, i, t);
          if (tap.ends_after(Stage::kSoftmax)) continue;
          tap.template visit<Tensor::kRunningM>(running_m, b, h, i, t);
          running_l = running_l * rescale + l;
          tap.template visit<Tensor::kRunningL>(running_l, b, h, i, t);
          for (int d = 0; d < dv; ++d) {
            float partial = 0;
            for (int key = begin; key < end; ++key)
              partial += s[static_cast<std::size_t>(key - begin)] * v[at(sv, b, g, key, d)];
            tap.template visit<Tensor::kPartialO>(partial, b, h, i, t, d);
            float& sum = running_o[static_cast<std::size_t>(d)];
            sum = sum * rescale + partial;
            tap.template visit<Tensor::kRunningO>(sum, b, h, i, t, d);
          }
        }
        if (last_stage(r.gate) != Stage::kReduce) continue;
        r.lse[(std::int64_t{b} * p.heads + h) * p.seqlen_q + i] =
            running_l == 0 ? -kInfinity : running_m + std::log(running_l);
        const bool twice =
            kFlaw == Flaw::kDividesTwice || kFlaw == Flaw::kTwoFaults ||
            kFlaw == Flaw::kReadsWorkspaceAndDividesTwice ||
            kFlaw == Flaw::kUnsteadyRoundingAndDividesTwice ||
            (kFlaw == Flaw::kDisturbedByTaps && !Tap::kEnabled) ||
            ((kFlaw == Flaw::kUnsteady || kFlaw == Flaw::kSeldomUnsteady) && second_run);
        const float factor =
            running_l == 0 ? 0.0f : 1.0f / (twice ? running_l * running_l : running_l);
        for (int d = 0; d < dv; ++d) {
          if (kFlaw == Flaw::kSkipsCell && marked_row && d == 1) continue;
          float& cell = o[at(so, b, h, i, d)];
          const float before = kFlaw == Flaw::kAddsToO ? cell : 0.0f;
          cell = running_o[static_cast<std::size_t>(d)] * factor + before;
          if (reads_workspace(kFlaw) && marked_row)
            cell += static_cast<const float*>(r.workspace)[d];
          if (rounds_unsteadily(kFlaw) && second_run && marked_row && d == 0)
            cell = std::nextafter(cell, kInfinity);
          if (kFlaw == Flaw::kReadsPadding && marked_row)
            cell += 0.0f * v[std::int64_t{p.batch} * p.kv_heads * p.seqlen_k * dv + d];
        }
      }
    }
  }
  if (kFlaw == Flaw::kWritesOutside) o[std::int64_t{p.batch} * p.heads * p.seqlen_q * dv] = 1.0f;
}

template <Flaw kFlaw>
Status run(const RunRequest& r) {
  if (kFlaw == Flaw::kRefusesToLaunch) {
    std::snprintf(r.error, r.error_capacity, "out of luck.");
    return Status::kLaunchFailed;
  }
  static int runs = 0;
  if (r.gate == Gate::kFull) {
    ++runs;
    attend<kFlaw>(r, NoTap{}, kFlaw == Flaw::kSeldomUnsteady ? runs % 7 == 3 : runs % 2 == 0);
  } else {
    attend<kFlaw>(r, StageTap{r.gate, r.taps}, false);
  }
  return Status::kOk;
}

template <Flaw kFlaw>
KernelInfo describe(const char* name) {
  KernelInfo info;
  info.name = name;
  info.summary = "scalar attention for tests";
  info.tiles = kTiles;
  info.num_tiles = 2;
  info.gates = kFlaw == Flaw::kNoTaps ? 1u << static_cast<int>(Gate::kFull) : 0x1fu;
  for (TensorExposure& exposure : info.exposure) {
    exposure.exposed = kFlaw != Flaw::kNoTaps;
    exposure.exempt_reason = exposure.exposed ? nullptr : "built without taps";
  }
  if (kFlaw == Flaw::kExemptP)
    info.exposure[static_cast<int>(Tensor::kP)] = {false, "kept in registers"};
  info.plan = plan;
  info.arithmetic = arithmetic;
  info.workspace_bytes = [](const Problem& p, const Geometry&) {
    return reads_workspace(kFlaw) ? static_cast<std::size_t>(p.head_dim_v) * sizeof(float)
                                  : std::size_t{0};
  };
  info.run = run<kFlaw>;
  return info;
}

}  // namespace
}  // namespace attn_diag

const attn_diag::KernelLibrary* attn_diag_kernel_library() {
  using namespace attn_diag;
  static const KernelInfo kernels[] = {
      describe<Flaw::kNone>("right"),
      describe<Flaw::kDividesTwice>("divides-twice"),
      describe<Flaw::kScaleTwice>("scale-twice"),
      describe<Flaw::kOneKeyALittle>("one-key-a-little"),
      describe<Flaw::kTwoFaults>("two-faults"),
      describe<Flaw::kSkipsCell>("skips-cell"),
      describe<Flaw::kVisitsTwice>("visits-twice"),
      describe<Flaw::kWritesOutside>("writes-outside"),
      describe<Flaw::kDisturbedByTaps>("disturbed-by-taps"),
      describe<Flaw::kUnsteady>("unsteady"),
      describe<Flaw::kSeldomUnsteady>("seldom-unsteady"),
      describe<Flaw::kUnsteadyRounding>("unsteady-rounding"),
      describe<Flaw::kNoTaps>("no-taps"),
      describe<Flaw::kExemptP>("exempt-p"),
      describe<Flaw::kImpreciseExp>("imprecise-exp"),
      describe<Flaw::kReadsWorkspace>("reads-workspace"),
      describe<Flaw::kReadsWorkspaceAndDividesTwice>("reads-workspace-and-divides-twice"),
      describe<Flaw::kUnsteadyRoundingAndDividesTwice>("unsteady-rounding-and-divides-twice"),
      describe<Flaw::kReadsPadding>("reads-padding"),
      describe<Flaw::kAddsToO>("adds-to-o"),
      describe<Flaw::kRefusesToLaunch>("refuses-to-launch"),
  };
  static const KernelLibrary library = {kKernelAbiVersion, std::size(kernels), kernels};
  return &library;
}

const attn_diag::BuildInfo* attn_diag_build_info() {
  static const attn_diag::BuildInfo build = {0, nullptr, "any", "", "host", "", false, ""};
  return &build;
}

// Makes a kernel library of the declarations in bring.h: what ATTN_DIAG_EXPORT expands to.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <exception>
#include <type_traits>
#include <utility>

#include "attn_diag/kernels/bring.h"
#include "attn_diag/kernels/stage_buffers.h"

namespace attn_diag {
namespace brought {

inline Status say(Status status, char* error, std::size_t capacity, const char* what,
                  const char* why) {
  if (error != nullptr && capacity > 0) std::snprintf(error, capacity, "%s%s", what, why);
  return status;
}

constexpr std::uint32_t stages_of(const Declaration& d) {
  std::uint32_t mask = 0;
  for (int i = 0; i < d.stages.size; ++i) mask |= 1u << static_cast<int>(d.stages.items[i]);
  return mask;
}

// What makes no sense together.
inline const char* why_not(const Declaration& d) {
  if (d.part == Part::kAttention) return nullptr;
  if (d.part != Part::kScores && d.scores != Scores::kNatural)
    return "a kernel that is given S or P is given S scaled and masked, .scores = "
           "Scores::kNatural; before scale "
           "and mask S is .part = Part::kFromRawScores";
  if (d.part == Part::kFromProbs && d.stages.size > 0)
    return "a kernel that computes o of P has no stages before it; leave out .stages";
  if (d.part == Part::kScores && d.stages.size > 0)
    return "S is what Call::scores() holds; leave out .stages";
  return nullptr;
}

constexpr bool has_splits(const Declaration& d) { return d.num_splits > 0 || d.split_per_tile; }

[[gnu::noinline]] inline Status plan(const Declaration& d, const Problem& problem, TileShape tile,
                                     int num_splits, Geometry* geometry) {
  Geometry g;
  g.tile = tile;
  g.frame = d.frame;
  g.skips_masked_tiles = d.skips_masked_tiles;
  g.has_split_merge = has_splits(d);
  const int tiles = ceil_div(problem.seqlen_k, tile.block_n);
  if (d.split_per_tile)
    g.num_splits = tiles;
  else if (d.num_splits > 0)
    g.num_splits = num_splits > 0 ? num_splits : d.num_splits;
  g.tiles_per_split = ceil_div(tiles, g.num_splits);
  *geometry = g;
  return Status::kOk;
}

// Not inlined, here and below: a library may have hundreds of declarations.
[[gnu::noinline]] inline Arithmetic arithmetic(const Declaration& d, const Problem& problem,
                                               const Geometry& g) {
  if (d.arithmetic != nullptr) return d.arithmetic(problem, g);
  Arithmetic a;
  a.accumulate = d.accumulate;
  if (d.tensor_cores) a.dot_ulp = 2.5;
  if (d.p_in_input_type) a.probs = problem.dtype;
  a.l_from_rounded_probs = d.l_from_rounded_p;
  if (d.s_in_input_type) a.scores = problem.dtype;
  a.partial = d.partial_in_input_type ? problem.dtype : d.partial;
  if (d.partial_stats_in_input_type) a.partial_stats = problem.dtype;
  a.output = problem.dtype;
  a.scale_applied_to_q = d.q_prescaled;
  if (d.q_prescaled) a.scaled_q = problem.dtype;
  // softmax_scale * log2 e is two roundings, the argument of exp2 two more.
  if (d.exp2) a.exp_ulp_per_x = 4.0;
  return a;
}

// Runs the user's code; whatever it throws and whatever error it leaves becomes words.
[[gnu::noinline]] inline Status call(const Declaration& d, const RunRequest& r) {
  const auto failed = [&](const char* what, const char* why) {
    return say(Status::kLaunchFailed, r.error, r.error_capacity, what, why);
  };
  try {
    StageBuffers stages(r, stages_of(d));
    cudaGetLastError();  // of an earlier run
    WideOutput wide_output(r);
    d.call(Call(r, wide_output, stages.pointers(), stages_of(d)));
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
      return failed("after the call cudaGetLastError() says: ", cudaGetErrorString(error));
    // The kernel may use streams of its own.
    if (r.synchronize || stages.any()) error = cudaDeviceSynchronize();
    if (error != cudaSuccess) return failed("it failed while it ran: ", cudaGetErrorString(error));
    stages.copy_to_taps();
    if (wide_output.is_used()) wide_output.store();
  } catch (const Refused& e) {
    return say(Status::kUnsupported, r.error, r.error_capacity, "", e.what());
  } catch (const std::exception& e) {
    cudaGetLastError();
    return failed("its host code threw: ", e.what());
  } catch (...) {
    cudaGetLastError();
    return failed("its host code threw something that is no std::exception", "");
  }
  return Status::kOk;
}

// The functions of one declaration.
struct FunctionsOfOne {
  decltype(KernelInfo::plan) plan;
  decltype(KernelInfo::arithmetic) arithmetic;
  decltype(KernelInfo::workspace_bytes) workspace_bytes;
  decltype(KernelInfo::run) run;
};

// Of the declaration number kIndex, as KernelInfo wants them: without a context.
template <auto kDeclared, std::size_t kIndex>
struct Functions {
  static const Declaration& declaration() { return kDeclared()[kIndex]; }

  static Status plan(const Problem& problem, TileShape tile, std::int32_t num_splits,
                     Geometry* geometry, char* error, std::size_t capacity) {
    if (const char* why = why_not(declaration()))
      return say(Status::kUnsupported, error, capacity, "its declaration cannot be: ", why);
    return brought::plan(declaration(), problem, tile, num_splits, geometry);
  }
  static Arithmetic arithmetic(const Problem& problem, const Geometry& geometry) {
    return brought::arithmetic(declaration(), problem, geometry);
  }
  static std::size_t workspace_bytes(const Problem& problem, const Geometry& geometry) {
    const Declaration& d = declaration();
    return d.workspace == nullptr ? 0 : d.workspace(problem, geometry);
  }
  static Status run(const RunRequest& request) { return call(declaration(), request); }

  static constexpr FunctionsOfOne kAll = {plan, arithmetic, workspace_bytes, run};
};

// What a KernelInfo points to.
struct Described {
  KernelInfo info;
  Support support;
  TileShape tiles[Few<TileShape>::kMost + 1];
};

inline Support support_of(const Declaration& d) {
  Support s;
  s.dtypes = d.dtypes.bits;
  s.layouts = d.layouts.bits;
  s.masks = d.masks.bits;
  s.head_dims = d.head_dims.items;
  s.num_head_dims = d.head_dims.size;
  s.max_head_dim = d.max_head_dim;
  s.other_head_dim_v = d.other_head_dim_v;
  s.grouped_heads = d.grouped_heads;
  s.other_seqlen_k = d.other_seqlen_k;
  s.any_scale = d.any_scale;
  s.seqlen_q_multiple_of = d.seqlen_q_multiple_of;
  s.seqlen_k_multiple_of = d.seqlen_k_multiple_of;
  s.max_seqlen_k = d.max_seqlen_k;
  return s;
}

inline const char* why_exempt(const Declaration& d, Tensor t) {
  if (d.part == Part::kScores) return "the kernel computes S alone";
  const bool of_scores = d.part == Part::kFromScores || d.part == Part::kFromRawScores;
  if (of_scores && t == Tensor::kS) return "it is given";
  if (d.part == Part::kFromProbs)
    return t == Tensor::kP ? "it is given" : "the kernel computes o of P alone";
  const bool is_merged = t == Tensor::kMergedL || t == Tensor::kMergedO;
  if (is_merged && !has_splits(d)) return "the kernel declares no splits to merge";
  return "not among the adapter's .stages";
}

// All but the functions.
[[gnu::noinline]] inline void describe(const Declaration& d, Described& out) {
  out.support = support_of(d);
  out.tiles[0] = d.tile;
  for (int i = 0; i < d.other_tiles.size; ++i) out.tiles[i + 1] = d.other_tiles.items[i];
  KernelInfo& info = out.info;
  info.name = d.name;
  info.summary = d.summary;
  info.tiles = out.tiles;
  info.num_tiles = 1 + d.other_tiles.size;
  info.takes_num_splits = d.num_splits > 0 && !d.split_per_tile;
  info.gates = 1u << static_cast<int>(Gate::kReduce) | 1u << static_cast<int>(Gate::kFull);
  for (int t = 0; t < kNumTensors; ++t) {
    const bool exposed = (stages_of(d) >> t & 1u) != 0;
    // The kernel runs to its end all the same; what is judged ends there.
    if (exposed) info.gates |= 1u << static_cast<int>(stage_of(static_cast<Tensor>(t)));
    info.exposure[t] = {exposed, exposed ? nullptr : why_exempt(d, static_cast<Tensor>(t)), true};
  }
  for (const Tensor output : {Tensor::kLse, Tensor::kO})
    if (d.part != Part::kScores) info.exposure[static_cast<int>(output)] = {true, nullptr, true};
  if (d.part == Part::kScores) {
    info.exposure[static_cast<int>(Tensor::kS)] = {true, nullptr, true};
    info.gates |= 1u << static_cast<int>(Gate::kQk);
  }
  info.support = &out.support;
  info.conventions = {d.lse, d.scores, d.normalised_partials};
  info.part = d.part;
  // S and P hold no lse; a kernel of P alone makes none.
  if (d.part == Part::kScores || d.part == Part::kFromProbs) info.conventions.lse = Lse::kNone;
  for (int i = 0; i < 3; ++i) info.codes[i] = i == 0 ? d.q_codes : i == 1 ? d.k_codes : d.v_codes;
}

template <auto kDeclared, std::size_t... kIndex>
const KernelLibrary* library(std::index_sequence<kIndex...>) {
  constexpr std::size_t kCount = sizeof...(kIndex);
  static Described described[kCount];
  static KernelInfo kernels[kCount];
  static const KernelLibrary made = [] {
    static constexpr FunctionsOfOne kFunctions[] = {Functions<kDeclared, kIndex>::kAll...};
    for (std::size_t i = 0; i < kCount; ++i) {
      describe(kDeclared()[i], described[i]);
      kernels[i] = described[i].info;
      kernels[i].plan = kFunctions[i].plan;
      kernels[i].arithmetic = kFunctions[i].arithmetic;
      kernels[i].workspace_bytes = kFunctions[i].workspace_bytes;
      kernels[i].run = kFunctions[i].run;
    }
    return KernelLibrary{kKernelAbiVersion, kCount, kernels};
  }();
  return &made;
}

}  // namespace brought

// kDeclared: a function that returns a reference to an array of Declaration.
template <auto kDeclared>
const KernelLibrary* brought_library() {
  constexpr std::size_t kCount = std::extent_v<std::remove_reference_t<decltype(kDeclared())>>;
  return brought::library<kDeclared>(std::make_index_sequence<kCount>());
}

}  // namespace attn_diag

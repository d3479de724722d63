// The stages of attention and the tensors each one produces. This list exists once: taps, captures,
// HDF5 paths, the reference, the command and the reports all read it.
//
//   stage    tensor     shape            meaning (tile t = KV tile t; natural logarithms)
//   qk       S          [B,H,Sq,Sk]      softmax_scale * q.k, -inf where masked
//   softmax  m          [B,H,Sq,T]       row max, the frame of P: see Frame in geometry.h
//            l          [B,H,Sq,T]       sum of P over the keys of tile t (this tile only)
//            P          [B,H,Sq,Sk]      exp(S - m), unnormalised; 0 where masked
//   pv       partial_o  [B,H,Sq,T,Dv]    P_t V_t of this tile only, unnormalised
//   reduce   running_m  [B,H,Sq,T]       row max after tile t, over its split's tiles so far
//            running_l  [B,H,Sq,T]       row sum after tile t, likewise, in the frame of running_m
//            running_o  [B,H,Sq,T,Dv]    accumulator after tile t, likewise
//            merged_l   [B,H,Sq,N]       row sum after merging splits 0..n, in the frame of the
//            merged_o   [B,H,Sq,N,Dv]      row max over all splits; N = num_splits
//            lse        [B,H,Sq]         m + ln l; -inf for a row with no visible key
//            o          [B,H,Sq,Dv]      the output; 0 for a row with no visible key
//
// A tensor a kernel cannot expose is declared exempt by name with a reason (adapter.h).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

enum class Stage : std::uint8_t { kQk, kSoftmax, kPv, kReduce };
inline constexpr int kNumStages = 4;

// The compile-time choice of which stages are built. kFull is the production kernel, without taps;
// the others end after the stage they name and carry taps.
enum class Gate : std::uint8_t { kQk, kSoftmax, kPv, kReduce, kFull };

// In pipeline order: the order in which a divergence is "first".
enum class Tensor : std::uint8_t {
  kS,
  kM,
  kL,
  kP,
  kPartialO,
  kRunningM,
  kRunningL,
  kRunningO,
  kMergedL,
  kMergedO,
  kLse,
  kO,
};
inline constexpr int kNumTensors = 12;

// Sets of tensors are masks of these.
constexpr std::uint32_t tensor_bit(Tensor t) { return 1u << static_cast<unsigned>(t); }

// The axis that follows (batch, head, query), if any; kv_tile and split may be followed by dim.
enum class Axis : std::uint8_t { kBatch, kHead, kQuery, kKey, kKvTile, kSplit, kDim };

struct TensorInfo {
  Tensor id;
  Stage stage;
  std::string_view name;     // as in HDF5, the command and the reports
  int rank;                  // 3..5
  std::array<Axis, 5> axes;  // the first `rank` are valid
};

struct StageInfo {
  Stage id;
  std::string_view name;  // as TensorInfo's
  std::uint32_t inputs;   // tensors of earlier stages that it computes from, tensor_bit() each
};

inline constexpr std::array<StageInfo, kNumStages> kStages = {{
    {Stage::kQk, "qk", 0},
    {Stage::kSoftmax, "softmax", tensor_bit(Tensor::kS)},
    {Stage::kPv, "pv", tensor_bit(Tensor::kP)},
    {Stage::kReduce, "reduce",
     tensor_bit(Tensor::kM) | tensor_bit(Tensor::kL) | tensor_bit(Tensor::kPartialO)},
}};
inline constexpr std::array<std::string_view, kNumStages> kStageNames = [] {
  std::array<std::string_view, kNumStages> names;
  for (int s = 0; s < kNumStages; ++s) names[s] = kStages[s].name;
  return names;
}();
// The inputs of all stages.
inline constexpr std::uint32_t kStageInputs = [] {
  std::uint32_t inputs = 0;
  for (const StageInfo& stage : kStages) inputs |= stage.inputs;
  return inputs;
}();
inline constexpr std::array<std::string_view, 5> kGateNames = {"qk", "softmax", "pv", "reduce",
                                                               "full"};
inline constexpr std::array<std::string_view, 7> kAxisNames = {"batch",   "head",  "query", "key",
                                                               "kv_tile", "split", "dim"};

inline constexpr std::array<TensorInfo, kNumTensors> kTensors = [] {
  using T = Tensor;
  constexpr Axis kBatch = Axis::kBatch, kHead = Axis::kHead, kQuery = Axis::kQuery,
                 kKey = Axis::kKey, kKvTile = Axis::kKvTile, kSplit = Axis::kSplit,
                 kDim = Axis::kDim;
  constexpr Axis x = kBatch;  // unused slot
  return std::array<TensorInfo, kNumTensors>{{
      {T::kS, Stage::kQk, "S", 4, {kBatch, kHead, kQuery, kKey, x}},
      {T::kM, Stage::kSoftmax, "m", 4, {kBatch, kHead, kQuery, kKvTile, x}},
      {T::kL, Stage::kSoftmax, "l", 4, {kBatch, kHead, kQuery, kKvTile, x}},
      {T::kP, Stage::kSoftmax, "P", 4, {kBatch, kHead, kQuery, kKey, x}},
      {T::kPartialO, Stage::kPv, "partial_o", 5, {kBatch, kHead, kQuery, kKvTile, kDim}},
      {T::kRunningM, Stage::kReduce, "running_m", 4, {kBatch, kHead, kQuery, kKvTile, x}},
      {T::kRunningL, Stage::kReduce, "running_l", 4, {kBatch, kHead, kQuery, kKvTile, x}},
      {T::kRunningO, Stage::kReduce, "running_o", 5, {kBatch, kHead, kQuery, kKvTile, kDim}},
      {T::kMergedL, Stage::kReduce, "merged_l", 4, {kBatch, kHead, kQuery, kSplit, x}},
      {T::kMergedO, Stage::kReduce, "merged_o", 5, {kBatch, kHead, kQuery, kSplit, kDim}},
      {T::kLse, Stage::kReduce, "lse", 3, {kBatch, kHead, kQuery, x, x}},
      {T::kO, Stage::kReduce, "o", 4, {kBatch, kHead, kQuery, kDim, x}},
  }};
}();

constexpr const TensorInfo& info(Tensor t) { return kTensors[static_cast<std::size_t>(t)]; }
constexpr std::string_view name(Tensor t) { return info(t).name; }
constexpr const StageInfo& info(Stage s) { return kStages[static_cast<std::size_t>(s)]; }
constexpr std::string_view name(Stage s) { return info(s).name; }
constexpr std::string_view name(Gate g) { return kGateNames[static_cast<std::size_t>(g)]; }
constexpr std::string_view name(Axis a) { return kAxisNames[static_cast<std::size_t>(a)]; }
constexpr Stage stage_of(Tensor t) { return info(t).stage; }

// Cells along one axis.
constexpr std::int64_t axis_extent(Axis a, const Problem& p, const Geometry& g) {
  switch (a) {
    case Axis::kBatch:
      return p.batch;
    case Axis::kHead:
      return p.heads;
    case Axis::kQuery:
      return p.seqlen_q;
    case Axis::kKey:
      return p.seqlen_k;
    case Axis::kKvTile:
      return num_kv_tiles(p, g);
    case Axis::kSplit:
      return g.num_splits;
    case Axis::kDim:
      return p.head_dim_v;
  }
  return 0;
}

// The last stage a gate builds.
constexpr ATTN_DIAG_HD Stage last_stage(Gate g) {
  return g == Gate::kFull ? Stage::kReduce : static_cast<Stage>(g);
}

}  // namespace attn_diag

// What a kernel declares of itself beside its tiles and its arithmetic: the problems it takes, and the
// conventions of what it writes. The harness refuses other problems with these words, shows them in
// `attn-diag list`, and converts what was written before it compares.
#pragma once

#include <cstdint>

#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// Masks a kernel takes, as bits.
inline constexpr std::uint32_t kTakesNoMask = 1;
inline constexpr std::uint32_t kTakesCausalSquare =
    2;  // seqlen_q = seqlen_k, where alignments agree
inline constexpr std::uint32_t kTakesCausalTopLeft = 4;
inline constexpr std::uint32_t kTakesCausalBottomRight = 8;
inline constexpr std::uint32_t kTakesWindow = 16;

// The problems a kernel takes.
struct Support {
  std::uint32_t dtypes = 0;   // bit t: DType t
  std::uint32_t layouts = 0;  // bit l: Layout l
  std::uint32_t masks = 0;    // kTakes...
  // Head dimensions: these, or if there are none, those up to max_head_dim (0: any).
  const std::int32_t* head_dims = nullptr;
  std::int32_t num_head_dims = 0;
  std::int32_t max_head_dim = 0;
  bool other_head_dim_v = false;  // head_dim_v may differ from head_dim
  bool grouped_heads = false;     // kv_heads may be fewer than heads
  bool other_seqlen_k = false;    // seqlen_k may differ from seqlen_q
  bool any_scale = true;          // softmax_scale may differ from 1 / sqrt(head_dim)
  std::int32_t seqlen_q_multiple_of = 1;
  std::int32_t seqlen_k_multiple_of = 1;
  std::int32_t max_seqlen_k = 0;  // 0: any
};

enum class LseConvention : std::uint8_t {
  kNatural,  // m + ln l
  kBase2,    // log2 e times that: m * log2 e + log2 l
  kNone,     // the kernel writes none
};

// What S, m and running_m are multiples of.
enum class ScoreUnit : std::uint8_t {
  kNatural,   // softmax_scale * q.k
  kBase2,     // log2 e * softmax_scale * q.k, for exp2
  kUnscaled,  // q.k
};

// How a kernel writes what it writes, where that differs from docs/conventions.md.
struct Conventions {
  LseConvention lse = LseConvention::kNatural;
  ScoreUnit scores = ScoreUnit::kNatural;
  // partial_o is divided by l of its tile, running_o by running_l, merged_o by merged_l.
  bool normalised_partials = false;
};

}  // namespace attn_diag

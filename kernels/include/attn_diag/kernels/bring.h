// Brings a kernel of yours to attn-diag: say how to call it, and what it is.
//
//     #include <attn_diag/kernels/bring.h>
//     static void call(const attn_diag::Call& c) {
//       flash_fwd(c.q<half>(), c.k<half>(), c.v<half>(), c.o<half>(), c.lse(), c.batch(), c.heads(),
//                 c.seqlen(), c.head_dim(), c.scale(), c.is_causal(), c.stream());
//     }
//     ATTN_DIAG_EXPORT({.name = "flash", .call = call, .dtypes = fp16, .head_dims = {64},
//                       .masks = none | causal, .tile = {64, 64}});
//
// in one source of the library, after the functions it names. Several kernels are several {...},
// separated by commas. docs/bring-your-kernel.md has complete examples. C++17 is enough for g++, clang and
// nvcc; where designated initialisers are refused, give a function's result: ATTN_DIAG_EXPORT(describe_flash()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "attn_diag/kernels/adapter.h"
#include "attn_diag/kernels/call.h"

namespace attn_diag {

// Up to eight of a kind.
template <class T>
struct Few {
  static constexpr int kMost = 8;
  T items[kMost] = {};
  int size = 0;

  constexpr Few() = default;
  constexpr Few(std::initializer_list<T> given) {
    for (const T& item : given)
      size < kMost ? static_cast<void>(items[size++] = item) : throw "attn-diag: more than eight";
  }
};

// A set of flags that only combines with its own kind.
template <class Tag>
struct Set {
  std::uint32_t bits;
  constexpr Set operator|(Set other) const { return {bits | other.bits}; }
};
using DTypes = Set<DType>;
using Layouts = Set<Layout>;
using Masks = Set<Mask>;

// Spelled as on the command line, "_" for ":" and "-"; ATTN_DIAG_EXPORT knows them without attn_diag::.
inline namespace words {
[[maybe_unused]] inline constexpr DTypes fp16 = {1u << static_cast<int>(DType::kFp16)};
[[maybe_unused]] inline constexpr DTypes bf16 = {1u << static_cast<int>(DType::kBf16)};
[[maybe_unused]] inline constexpr DTypes fp32 = {1u << static_cast<int>(DType::kFp32)};
[[maybe_unused]] inline constexpr Layouts bhsd = {1u << static_cast<int>(Layout::kBHSD)};
[[maybe_unused]] inline constexpr Layouts bshd = {1u << static_cast<int>(Layout::kBSHD)};
[[maybe_unused]] inline constexpr Masks none = {kTakesNoMask};
[[maybe_unused]] inline constexpr Masks causal = {kTakesCausalSquare};  // where seqlen_q = seqlen_k
[[maybe_unused]] inline constexpr Masks causal_top_left = {kTakesCausalTopLeft};
[[maybe_unused]] inline constexpr Masks causal_bottom_right = {kTakesCausalBottomRight};
[[maybe_unused]] inline constexpr Masks window = {kTakesWindow};
}  // namespace words
using Lse = LseConvention;
using Scores = ScoreUnit;

// What is declared of a kernel. Order matters to designated initialisers.
struct Declaration {
  const char* name = nullptr;           // as in --kernel ./library.so:name
  const char* summary = "";             // one line, for attn-diag list
  void (*call)(const Call&) = nullptr;  // calls the kernel; may throw std::exception
  // Part::kScores (q, k -> Call::scores()), kFromScores (Call::scores(), v -> o), kFromRawScores (the same, of q.k before
  // scale and mask) or kFromProbs (Call::probs(), v -> o).
  Part part = Part::kAttention;

  // The problems it takes; others are refused by these.
  DTypes dtypes = fp16;              // fp16 | bf16 | fp32
  Few<std::int32_t> head_dims = {};  // {64, 128}; {}: any, up to max_head_dim
  std::int32_t max_head_dim = 0;     // 0: any
  bool other_head_dim_v = false;     // head_dim_v may differ from head_dim
  Masks masks = none;                // none | causal | causal_bottom_right | window ...
  Layouts layouts = bhsd;            // bhsd | bshd
  bool grouped_heads = false;        // kv_heads may be fewer than heads (GQA, MQA)
  bool other_seqlen_k = false;       // seqlen_k may differ from seqlen_q
  std::int32_t seqlen_q_multiple_of = 1;
  std::int32_t seqlen_k_multiple_of = 1;
  std::int32_t max_seqlen_k = 0;  // 0: any
  bool any_scale = true;          // false: it takes 1 / sqrt(head_dim) alone

  // Inputs that it takes as 8-bit codes with scales, by coded_q(), coded_k() and coded_v() of codes.h, as
  // {CodeType::kInt8, ScalePer::kToken}.
  Codes q_codes = {}, k_codes = {}, v_codes = {};

  // How it cuts the problem.
  TileShape tile = {64, 64};        // queries and keys a tile
  Few<TileShape> other_tiles = {};  // that Call::tile() may also say, by --tile
  int num_splits = 0;               // of split-K: how many by default, Call::num_splits() says
  bool split_per_tile = false;      // split-K with a split for every KV tile, whatever num_splits
  Frame frame = Frame::kRunning;    // what recorded m, l, P and partial_o are relative to
  bool skips_masked_tiles = true;

  // Its arithmetic, which the bounds follow (docs/bounds.md). By default: fp32 throughout, __expf.
  bool tensor_cores = false;           // q.k and P.V on tensor cores
  bool s_in_input_type = false;        // S is rounded to the input type before the softmax
  bool p_in_input_type = false;        // P is rounded to the input type before P.V ...
  bool l_from_rounded_p = false;       // ... and l sums what it was rounded to
  bool q_prescaled = false;            // q * softmax_scale is rounded to the input type, then q.k
  bool exp2 = false;                   // exp2(x * log2 e), log2 e in the scale
  DType accumulate = DType::kFp32;     // of all sums
  DType partial = DType::kFp32;        // of split partials in memory
  bool partial_in_input_type = false;  // partial is the input type, whichever it is
  bool partial_stats_in_input_type = false;  // m and l, or the lse, of a split, too
  Arithmetic (*arithmetic)(const Problem&, const Geometry&) = nullptr;  // instead of all these

  // What it writes.
  Lse lse = Lse::kNatural;  // Lse::kBase2, Lse::kNone
  // Tensors that the call writes to Call::stage(), as {Tensor::kS, Tensor::kP}; not o and lse.
  Few<Tensor> stages = {};
  Scores scores = Scores::kNatural;  // of the stages S, m, running_m: kBase2, kUnscaled
  bool normalised_partials = false;  // partial_o, running_o, merged_o are divided by their l

  // Bytes of Call::workspace(); null: none.
  std::size_t (*workspace)(const Problem&, const Geometry&) = nullptr;
};

}  // namespace attn_diag

#include "attn_diag/kernels/brought_library.h"

// Using-declarations, not a directive: in the braces these words hide others of the user's.
#define ATTN_DIAG_EXPORT(...)                                                                 \
  static const auto& attn_diag_declared() {                                                   \
    using ::attn_diag::words::fp16, ::attn_diag::words::bf16, ::attn_diag::words::fp32,       \
        ::attn_diag::words::bhsd, ::attn_diag::words::bshd, ::attn_diag::words::none,         \
        ::attn_diag::words::causal, ::attn_diag::words::causal_top_left,                      \
        ::attn_diag::words::causal_bottom_right, ::attn_diag::words::window;                  \
    using ::attn_diag::DType, ::attn_diag::Frame, ::attn_diag::Tensor, ::attn_diag::Lse,      \
        ::attn_diag::Scores, ::attn_diag::Part, ::attn_diag::CodeType, ::attn_diag::ScalePer; \
    static const ::attn_diag::Declaration declared[] = {__VA_ARGS__};                         \
    return declared;                                                                          \
  }                                                                                           \
  extern "C" const ::attn_diag::KernelLibrary* attn_diag_kernel_library() {                   \
    return ::attn_diag::brought_library<&attn_diag_declared>();                               \
  }                                                                                           \
  static_assert(::attn_diag::kKernelAbiVersion == 5, "headers of one version of attn-diag")

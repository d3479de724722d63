// The attention problem: sizes, types, memory order, mask. Shared vocabulary of every layer; std
// only, usable from host and device code.
//
// Memory order of q, k, v, o is always dense row-major in the order the Layout names:
//   BHSD: q [batch][heads][seqlen_q][head_dim],  k [batch][kv_heads][seqlen_k][head_dim]
//   BSHD: q [batch][seqlen_q][heads][head_dim],  k [batch][seqlen_k][kv_heads][head_dim]
//   v, o as k, q with head_dim_v in place of head_dim.
//   lse  [batch][heads][seqlen_q] float, natural logarithm, in either layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#if defined(__CUDACC__) && !defined(ATTN_DIAG_HOST_EXECUTOR)
#define ATTN_DIAG_HD __host__ __device__
#else
#define ATTN_DIAG_HD
#endif

namespace attn_diag {

enum class DType : std::uint8_t { kFp16, kBf16, kFp32, kFp64 };  // kFp64: reference data only
enum class Layout : std::uint8_t { kBHSD, kBSHD };
enum class MaskKind : std::uint8_t { kNone, kCausal, kWindow };
enum class CausalAlignment : std::uint8_t { kTopLeft, kBottomRight };

// Which keys a query may see. `offset` below is 0 for top_left, seqlen_k - seqlen_q for
// bottom_right.
//   none:   every key
//   causal: key <= query + offset
//   window: query + offset - window_left <= key <= query + offset + window_right (bottom_right)
struct Mask {
  MaskKind kind = MaskKind::kNone;
  CausalAlignment alignment = CausalAlignment::kTopLeft;  // causal only
  std::int32_t window_left = 0;                           // window only, >= 0
  std::int32_t window_right = 0;                          // window only, >= 0
};

struct Problem {
  std::int32_t batch = 1;
  std::int32_t heads = 1;
  std::int32_t kv_heads = 1;  // divides heads; kv head of head h is h / (heads / kv_heads)
  std::int32_t seqlen_q = 1;
  std::int32_t seqlen_k = 1;
  std::int32_t head_dim = 1;    // of q and k
  std::int32_t head_dim_v = 1;  // of v and o
  DType dtype = DType::kFp16;   // of q, k, v, o in memory
  Layout layout = Layout::kBHSD;
  Mask mask;
  float softmax_scale = 1.0f;  // already resolved; 1/sqrt(head_dim) unless the user says otherwise
};

constexpr ATTN_DIAG_HD std::int32_t ceil_div(std::int32_t a, std::int32_t b) {
  return (a + b - 1) / b;
}
constexpr ATTN_DIAG_HD std::int32_t group_size(const Problem& p) { return p.heads / p.kv_heads; }

// As users spell them.
constexpr std::string_view name(DType t) {
  constexpr std::string_view kNames[] = {"fp16", "bf16", "fp32", "fp64"};
  const auto i = static_cast<std::size_t>(t);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}
constexpr std::string_view name(Layout l) { return l == Layout::kBHSD ? "BHSD" : "BSHD"; }

// Bytes of one element.
constexpr std::size_t size_of(DType t) { return t == DType::kFp64 ? 8 : t == DType::kFp32 ? 4 : 2; }

// Elements between neighbours along batch, head and sequence position; the last axis has stride 1.
struct Strides {
  std::int64_t batch, head, seq;
};

constexpr ATTN_DIAG_HD Strides dense_strides(Layout layout, std::int64_t heads, std::int64_t seqlen,
                                             std::int64_t dim) {
  return layout == Layout::kBHSD ? Strides{heads * seqlen * dim, seqlen * dim, dim}
                                 : Strides{seqlen * heads * dim, dim, heads * dim};
}

}  // namespace attn_diag

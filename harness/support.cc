#include "harness/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "harness/capture_fields.h"
#include "harness/coded_inputs.h"

namespace attn_diag {
namespace {

constexpr std::pair<std::uint32_t, std::string_view> kMaskWords[] = {
    {kTakesNoMask, "none"},
    {kTakesCausalSquare, "causal (seqlen_q = seqlen_k)"},
    {kTakesCausalTopLeft, "causal:top_left"},
    {kTakesCausalBottomRight, "causal:bottom_right"},
    {kTakesWindow, "window"}};

template <class T>
bool has(std::uint32_t set, T value) {
  return (set >> static_cast<unsigned>(value) & 1u) != 0;
}

std::string dtypes_text(const Support& s) {
  std::vector<std::string> words;
  for (const DType type : {DType::kFp16, DType::kBf16, DType::kFp32})
    if (has(s.dtypes, type)) words.push_back(text(type));
  return fmt::format("dtype {}", fmt::join(words, ", "));
}

std::string layouts_text(const Support& s) {
  std::vector<std::string> words;
  for (const Layout layout : {Layout::kBHSD, Layout::kBSHD})
    if (has(s.layouts, layout)) words.push_back(text(layout));
  return fmt::format("layout {}", fmt::join(words, ", "));
}

std::string masks_text(const Support& s) {
  std::vector<std::string_view> words;
  for (const auto& [bit, word] : kMaskWords)
    if ((s.masks & bit) != 0) words.push_back(word);
  return fmt::format("mask {}", fmt::join(words, ", "));
}

std::string head_dims_text(const Support& s) {
  if (s.num_head_dims > 0)
    return fmt::format("head_dim {}", fmt::join(s.head_dims, s.head_dims + s.num_head_dims, ", "));
  return s.max_head_dim > 0 ? fmt::format("head_dim up to {}", s.max_head_dim) : "any head_dim";
}

bool takes_mask(const Support& s, const Problem& p) {
  const std::uint32_t masks = s.masks;
  const std::uint32_t aligned =
      p.mask.alignment == CausalAlignment::kTopLeft ? kTakesCausalTopLeft : kTakesCausalBottomRight;
  switch (p.mask.kind) {
    case MaskKind::kNone:
      return (masks & kTakesNoMask) != 0;
    case MaskKind::kCausal:
      if (p.seqlen_q != p.seqlen_k) return (masks & aligned) != 0;
      return (masks & (kTakesCausalSquare | kTakesCausalTopLeft | kTakesCausalBottomRight)) != 0;
    case MaskKind::kWindow:
      return (masks & kTakesWindow) != 0;
  }
  return false;
}

bool takes_head_dim(const Support& s, int head_dim) {
  if (s.num_head_dims > 0)
    return std::find(s.head_dims, s.head_dims + s.num_head_dims, head_dim) !=
           s.head_dims + s.num_head_dims;
  return s.max_head_dim == 0 || head_dim <= s.max_head_dim;
}

bool is_default_scale(const Problem& p) {
  const double expected = 1.0 / std::sqrt(static_cast<double>(p.head_dim));
  return std::fabs(p.softmax_scale - expected) <= 1e-6 * expected;
}

// What is not taken, as the problem has it; empty if all is.
std::string first_refused(const Support& s, const Problem& p) {
  if (!has(s.dtypes, p.dtype)) return "dtype " + text(p.dtype);
  if (!has(s.layouts, p.layout)) return "layout " + text(p.layout);
  if (!takes_mask(s, p))
    return fmt::format("mask {} with seqlen_q {} and seqlen_k {}", text(p.mask), p.seqlen_q,
                       p.seqlen_k);
  if (!takes_head_dim(s, p.head_dim)) return fmt::format("head_dim {}", p.head_dim);
  if (p.head_dim_v != p.head_dim && !(s.other_head_dim_v && takes_head_dim(s, p.head_dim_v)))
    return fmt::format("head_dim_v {} with head_dim {}", p.head_dim_v, p.head_dim);
  if (p.kv_heads != p.heads && !s.grouped_heads)
    return fmt::format("{} kv_heads for {} heads", p.kv_heads, p.heads);
  if (p.seqlen_q != p.seqlen_k && !s.other_seqlen_k)
    return fmt::format("seqlen_q {} with seqlen_k {}", p.seqlen_q, p.seqlen_k);
  if (p.seqlen_q % s.seqlen_q_multiple_of != 0) return fmt::format("seqlen_q {}", p.seqlen_q);
  if (p.seqlen_k % s.seqlen_k_multiple_of != 0) return fmt::format("seqlen_k {}", p.seqlen_k);
  if (s.max_seqlen_k > 0 && p.seqlen_k > s.max_seqlen_k)
    return fmt::format("seqlen_k {}", p.seqlen_k);
  if (!s.any_scale && !is_default_scale(p)) return fmt::format("softmax_scale {}", p.softmax_scale);
  return "";
}

}  // namespace

std::vector<std::string> support_words(const Support& s) {
  std::vector<std::string> words = {dtypes_text(s), head_dims_text(s), masks_text(s),
                                    layouts_text(s)};
  words.emplace_back(s.other_head_dim_v ? "any head_dim_v" : "head_dim_v = head_dim");
  words.emplace_back(s.grouped_heads ? "grouped kv heads" : "kv_heads = heads");
  words.emplace_back(s.other_seqlen_k ? "seqlen_q and seqlen_k may differ" : "seqlen_q = seqlen_k");
  if (s.seqlen_q_multiple_of > 1)
    words.push_back(fmt::format("seqlen_q a multiple of {}", s.seqlen_q_multiple_of));
  if (s.seqlen_k_multiple_of > 1)
    words.push_back(fmt::format("seqlen_k a multiple of {}", s.seqlen_k_multiple_of));
  if (s.max_seqlen_k > 0) words.push_back(fmt::format("seqlen_k up to {}", s.max_seqlen_k));
  if (!s.any_scale) words.emplace_back("softmax_scale 1/sqrt(head_dim) alone");
  return words;
}

std::vector<std::string> convention_words(const Conventions& c) {
  std::vector<std::string> words;
  if (c.lse == LseConvention::kBase2) words.emplace_back("lse in base 2");
  if (c.lse == LseConvention::kNone) words.emplace_back("no lse");
  if (c.scores == ScoreUnit::kBase2) words.emplace_back("scores and row maxima in base 2");
  if (c.scores == ScoreUnit::kUnscaled) words.emplace_back("scores and row maxima unscaled");
  if (c.normalised_partials) words.emplace_back("partials divided by l");
  return words;
}

std::vector<std::string> part_words(const KernelInfo& kernel) {
  std::vector<std::string> words;
  switch (kernel.part) {
    case Part::kAttention:
      break;
    case Part::kScores:
      words.emplace_back("computes S of q and k alone");
      break;
    case Part::kFromScores:
      words.emplace_back("is given S, and computes o of S and v");
      break;
    case Part::kFromProbs:
      words.emplace_back("is given P, and computes o of P and v");
      break;
  }
  for (const std::string& coded : code_words(kernel)) words.push_back("takes " + coded);
  return words;
}

std::string why_not_supported(const Support& support, const Problem& problem) {
  const std::string refused = first_refused(support, problem);
  if (refused.empty()) return "";
  return fmt::format("{} is not among what it declares: {}.", refused,
                     fmt::join(support_words(support), "; "));
}

}  // namespace attn_diag

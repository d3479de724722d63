#include "harness/library/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "attn_diag/harness/check_problem.h"
#include "harness/capture/capture_fields.h"
#include "harness/library/code_words.h"

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

// Everything about the problem that the kernel does not take.
std::vector<std::string> all_refused(const Support& s, const Problem& p) {
  std::vector<std::string> all;
  const auto add = [&](bool refused, std::string words) {
    if (refused) all.push_back(std::move(words));
  };
  add(!has(s.dtypes, p.dtype), "dtype " + text(p.dtype));
  add(!has(s.layouts, p.layout), "layout " + text(p.layout));
  add(!takes_mask(s, p), fmt::format("mask {} with seqlen_q {} and seqlen_k {}", text(p.mask),
                                     p.seqlen_q, p.seqlen_k));
  add(!takes_head_dim(s, p.head_dim), fmt::format("head_dim {}", p.head_dim));
  add(p.head_dim_v != p.head_dim && !(s.other_head_dim_v && takes_head_dim(s, p.head_dim_v)),
      fmt::format("head_dim_v {} with head_dim {}", p.head_dim_v, p.head_dim));
  add(p.kv_heads != p.heads && !s.grouped_heads,
      fmt::format("{} kv_heads for {} heads", p.kv_heads, p.heads));
  add(p.seqlen_q != p.seqlen_k && !s.other_seqlen_k,
      fmt::format("seqlen_q {} with seqlen_k {}", p.seqlen_q, p.seqlen_k));
  add(p.seqlen_q % s.seqlen_q_multiple_of != 0, fmt::format("seqlen_q {}", p.seqlen_q));
  add(p.seqlen_k % s.seqlen_k_multiple_of != 0 ||
          (s.max_seqlen_k > 0 && p.seqlen_k > s.max_seqlen_k),
      fmt::format("seqlen_k {}", p.seqlen_k));
  add(!s.any_scale && !is_default_scale(p), fmt::format("softmax_scale {}", p.softmax_scale));
  return all;
}

// The multiple that is at least n, or the last one below a maximum.
std::int32_t to_multiple(std::int32_t n, std::int32_t of, std::int32_t most) {
  const std::int32_t up = (n + of - 1) / of * of;
  return most > 0 && up > most ? most / of * of : up;
}

// Another mask where this one is not taken, and its flag.
void choose_mask(const Support& s, Problem& p, std::vector<std::string>& flags) {
  if (takes_mask(s, p)) return;
  for (const char* const mask :
       {"none", "causal", "causal:bottom_right", "causal:top_left", "window:16,0"}) {
    const std::string_view word = mask;
    if (word == "causal" && p.seqlen_q != p.seqlen_k) continue;  // it does not say which
    Problem other = p;
    other.mask = {};
    other.mask.kind = word == "none"          ? MaskKind::kNone
                      : word == "window:16,0" ? MaskKind::kWindow
                                              : MaskKind::kCausal;
    other.mask.window_left = other.mask.kind == MaskKind::kWindow ? 16 : 0;
    other.mask.alignment =
        word == "causal:top_left" ? CausalAlignment::kTopLeft : CausalAlignment::kBottomRight;
    if (!takes_mask(s, other)) continue;
    p.mask = other.mask;
    flags.push_back(fmt::format("--mask {}", mask));
    return;
  }
}

// The flags that turn a problem into the nearest one that the kernel takes; empty if none is known.
std::string nearest_flags(const Support& s, Problem p) {
  const bool own_scale = is_default_scale(p);
  std::vector<std::string> flags = choose_open(s, {true, true, true, false}, p);
  const auto add = [&](const char* flag, const auto& value) {
    flags.push_back(fmt::format("--{} {}", flag, value));
  };
  if (p.head_dim_v != p.head_dim && !(s.other_head_dim_v && takes_head_dim(s, p.head_dim_v)))
    add("head-dim-v", p.head_dim_v = p.head_dim);
  if (p.kv_heads != p.heads && !s.grouped_heads) add("kv-heads", p.kv_heads = p.heads);
  const std::int32_t keys = to_multiple(s.other_seqlen_k ? p.seqlen_k : p.seqlen_q,
                                        s.seqlen_k_multiple_of, s.max_seqlen_k);
  const std::int32_t queries =
      s.other_seqlen_k ? to_multiple(p.seqlen_q, s.seqlen_q_multiple_of, 0) : keys;
  if (queries != p.seqlen_q && queries == keys)
    add("seqlen", queries);
  else if (queries != p.seqlen_q)
    add("seqlen-q", queries);
  if (keys != p.seqlen_k && queries != keys) add("seqlen-k", keys);
  if (keys != p.seqlen_k && queries == keys && queries == p.seqlen_q) add("seqlen-k", keys);
  p.seqlen_q = queries;
  p.seqlen_k = keys;
  if (own_scale) p.softmax_scale = default_softmax_scale(p.head_dim);
  choose_mask(s, p, flags);
  return all_refused(s, p).empty() ? fmt::format("{}", fmt::join(flags, " ")) : "";
}

}  // namespace

std::vector<std::string> support_words(const Support& s) {
  std::vector<std::string> words = {dtypes_text(s), head_dims_text(s), masks_text(s),
                                    layouts_text(s)};
  const bool any = s.num_head_dims == 0 && s.max_head_dim == 0;
  words.emplace_back(!s.other_head_dim_v ? "head_dim_v = head_dim"
                     : any               ? "any head_dim_v"
                                         : "head_dim_v of these, too");
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
    case Part::kFromRawScores:
      words.emplace_back("is given q.k before scale and mask, and computes o of it and v");
      break;
    case Part::kFromProbs:
      words.emplace_back("is given P, and computes o of P and v");
      break;
  }
  for (const std::string& coded : code_words(kernel)) words.push_back("takes " + coded);
  return words;
}

std::vector<std::string> choose_open(const Support& s, LeftOpen open, Problem& p) {
  std::vector<std::string> flags;
  const auto add = [&](const char* flag, const auto& value) {
    flags.push_back(fmt::format("--{} {}", flag, value));
  };
  for (const DType type : {DType::kFp16, DType::kBf16, DType::kFp32})
    if (open.dtype && !has(s.dtypes, p.dtype) && has(s.dtypes, type))
      add("dtype", text(p.dtype = type));
  for (const Layout layout : {Layout::kBHSD, Layout::kBSHD})
    if (open.layout && !has(s.layouts, p.layout) && has(s.layouts, layout))
      add("layout", text(p.layout = layout));
  if (open.head_dim && !takes_head_dim(s, p.head_dim)) {
    const std::int32_t old = p.head_dim;
    p.head_dim = s.num_head_dims == 0
                     ? s.max_head_dim
                     : *std::min_element(s.head_dims, s.head_dims + s.num_head_dims,
                                         [&](std::int32_t a, std::int32_t b) {
                                           return std::abs(a - old) < std::abs(b - old);
                                         });
    add("head-dim", p.head_dim);
    if (p.head_dim_v == old) p.head_dim_v = p.head_dim;
  }
  if (open.mask) choose_mask(s, p, flags);
  return flags;
}

std::string why_not_supported(const Support& support, const Problem& problem) {
  if (support.seqlen_q_multiple_of < 1 || support.seqlen_k_multiple_of < 1)
    return fmt::format(
        "it declares seqlen_q_multiple_of = {} and seqlen_k_multiple_of = {}: they are at least 1.",
        support.seqlen_q_multiple_of, support.seqlen_k_multiple_of);
  const std::vector<std::string> refused = all_refused(support, problem);
  if (refused.empty()) return "";
  const std::string flags = nearest_flags(support, problem);
  return fmt::format("{} {} not among what it declares: {}.{}", fmt::join(refused, ", "),
                     refused.size() == 1 ? "is" : "are", fmt::join(support_words(support), "; "),
                     flags.empty() ? "" : fmt::format(" It takes the problem with {}.", flags));
}

}  // namespace attn_diag

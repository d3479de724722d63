#include "harness/capture/capture_fields.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace attn_diag {
namespace {

template <class T, std::size_t kCount>
using Spellings = std::array<std::pair<T, std::string_view>, kCount>;

constexpr Spellings<DType, 4> kDTypes = {{{DType::kFp16, name(DType::kFp16)},
                                          {DType::kBf16, name(DType::kBf16)},
                                          {DType::kFp32, name(DType::kFp32)},
                                          {DType::kFp64, name(DType::kFp64)}}};
constexpr Spellings<Layout, 2> kLayouts = {
    {{Layout::kBHSD, name(Layout::kBHSD)}, {Layout::kBSHD, name(Layout::kBSHD)}}};
constexpr Spellings<Frame, 2> kFrames = {{{Frame::kTile, "tile"}, {Frame::kRunning, "running"}}};
constexpr Spellings<Part, 5> kParts = {{{Part::kAttention, "attention"},
                                        {Part::kScores, "scores"},
                                        {Part::kFromScores, "from_scores"},
                                        {Part::kFromProbs, "from_probs"},
                                        {Part::kFromRawScores, "from_raw_scores"}}};

template <class T, std::size_t kCount>
std::string spell(const Spellings<T, kCount>& spellings, T value) {
  for (const auto& [known, spelling] : spellings)
    if (known == value) return std::string(spelling);
  return fmt::format("invalid ({})", static_cast<int>(value));
}

template <class T, std::size_t kCount>
bool read(const Spellings<T, kCount>& spellings, const std::string& s, T& value) {
  for (const auto& [known, spelling] : spellings)
    if (spelling == s) {
      value = known;
      return true;
    }
  return false;
}

// A whole non-negative number from the front of s, which is then shortened.
bool take_number(std::string_view& s, std::int32_t& value) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc{} || value < 0) return false;
  s.remove_prefix(static_cast<std::size_t>(end - s.data()));
  return true;
}

}  // namespace

std::string text(DType dtype) { return spell(kDTypes, dtype); }
std::string text(Layout layout) { return spell(kLayouts, layout); }
std::string text(Frame frame) { return spell(kFrames, frame); }
std::string text(Part part) { return spell(kParts, part); }

std::string text(const Mask& mask) {
  switch (mask.kind) {
    case MaskKind::kNone:
      return "none";
    case MaskKind::kCausal:
      return mask.alignment == CausalAlignment::kTopLeft ? "causal:top_left"
                                                         : "causal:bottom_right";
    case MaskKind::kWindow:
      break;
  }
  return fmt::format("window:{},{}", mask.window_left, mask.window_right);
}

bool from_text(const std::string& s, DType& dtype) { return read(kDTypes, s, dtype); }
bool from_text(const std::string& s, Layout& layout) { return read(kLayouts, s, layout); }
bool from_text(const std::string& s, Frame& frame) { return read(kFrames, s, frame); }
bool from_text(const std::string& s, Part& part) { return read(kParts, s, part); }

bool from_text(const std::string& s, Mask& mask) {
  mask = {};
  if (s == "none") return true;
  if (s == "causal:top_left" || s == "causal:bottom_right") {
    mask.kind = MaskKind::kCausal;
    mask.alignment =
        s == "causal:top_left" ? CausalAlignment::kTopLeft : CausalAlignment::kBottomRight;
    return true;
  }
  constexpr std::string_view kWindow = "window:";
  std::string_view rest = s;
  if (rest.substr(0, kWindow.size()) != kWindow) return false;
  rest.remove_prefix(kWindow.size());
  mask.kind = MaskKind::kWindow;
  if (!take_number(rest, mask.window_left) || rest.empty() || rest.front() != ',') return false;
  rest.remove_prefix(1);
  return take_number(rest, mask.window_right) && rest.empty();
}

}  // namespace attn_diag

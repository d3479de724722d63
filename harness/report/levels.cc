#include "harness/report/levels.h"

#include <array>

namespace attn_diag::report {
namespace {

constexpr std::array<const char*, 7> kUnicode = {" ", "·", "░", "▒", "▓", "█", "N"};
constexpr std::array<const char*, 7> kAscii = {" ", ".", "-", "+", "*", "#", "N"};
constexpr std::array<const char*, 7> kMeaning = {"masked", "right",  ">1x",       ">10x",
                                                 ">100x",  ">1000x", "not finite"};

Colour colour_of(Level level) {
  return level <= kRight ? Colour::kDim : level <= kWrong10 ? Colour::kYellow : Colour::kRed;
}

}  // namespace

std::string glyph(Level level, const Style& style) {
  return paint(style, colour_of(level), (style.unicode ? kUnicode : kAscii)[level]);
}

std::string legend(const Style& style, bool with_masked) {
  std::string s = "    err/bound:";
  for (int i = with_masked ? kMasked : kRight; i <= kNotFinite; ++i) {
    const auto level = static_cast<Level>(i);
    s += "  " + (level == kMasked ? paint(style, Colour::kDim, "blank") : glyph(level, style)) +
         " " + kMeaning[level];
  }
  return s + '\n';
}

}  // namespace attn_diag::report

// How wrong a cell, a tile or a head is, in decades, as one character of a picture.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "harness/report/text.h"

namespace attn_diag::report {

enum Level : std::uint8_t { kMasked, kRight, kWrong1, kWrong10, kWrong100, kWrong1000, kNotFinite };

// For what has at least one wrong cell.
inline Level wrong_level(double ratio) {
  if (!std::isfinite(ratio)) return kNotFinite;
  return ratio > 1000 ? kWrong1000 : ratio > 100 ? kWrong100 : ratio > 10 ? kWrong10 : kWrong1;
}
// The level of an err/bound; negative: nothing was judged.
inline Level level_of(double ratio) {
  return ratio < 0 ? kMasked : ratio <= 1 ? kRight : wrong_level(ratio);
}

std::string glyph(Level level, const Style& style);  // painted
// "    err/bound:  blank masked  · right  ░ >1x ..."
std::string legend(const Style& style, bool with_masked);

}  // namespace attn_diag::report

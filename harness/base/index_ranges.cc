#include "harness/base/index_ranges.h"

#include <fmt/format.h>

namespace attn_diag {

std::string index_ranges(const std::vector<std::int64_t>& sorted) {
  constexpr int kMaxRanges = 8;
  std::string text;
  int count = 0;
  for (std::size_t i = 0; i < sorted.size(); ++count) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (count == kMaxRanges) return text + ", ...";
    text += (count == 0 ? "" : ", ") + std::to_string(sorted[i]);
    if (last > i) text += fmt::format("-{}", sorted[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace attn_diag

#include "tools/attn_diag/suggest.h"

#include <algorithm>

namespace attn_diag::cli {

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> d((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return d[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      at(i, j) = std::min(
          {at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  int best_distance = 1 + static_cast<int>(std::max<std::size_t>(typed.size() / 3, 1));
  for (const std::string& c : candidates) {
    const int distance = edit_distance(typed, c);
    if (distance < best_distance) best = &c, best_distance = distance;
  }
  return best == nullptr ? "" : " Did you mean " + *best + "?";
}

}  // namespace attn_diag::cli

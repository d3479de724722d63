#include "harness/base/close_names.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace attn_diag {
namespace {

// Insertions, deletions and replacements that turn a into b, upper and lower case being the same.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      const std::size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> close_names(const std::string& wanted,
                                     const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(wanted, name);
    // One edit in three letters, or a beginning that is right.
    const bool begins = wanted.size() >= 3 && name.rfind(wanted, 0) == 0;
    if (distance <= std::max<std::size_t>(1, wanted.size() / 3) || begins)
      ranked.emplace_back(distance, name);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  if (ranked.size() > 3) ranked.resize(3);
  std::vector<std::string> close;
  for (auto& entry : ranked) close.push_back(std::move(entry.second));
  return close;
}

}  // namespace attn_diag

#include "harness/shrink/delta.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace attn_diag::shrink {

std::int64_t smaller_size(const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& likely, const FirstSize& first_failing) {
  const std::int64_t last = sizes.back();
  std::set<std::int64_t> wanted(likely.begin(), likely.end());
  for (std::int64_t n = 1; n < last; n *= 2) wanted.insert(n);
  std::vector<std::int64_t> probes;
  for (const std::int64_t n : sizes)
    if (n < last && wanted.contains(n)) probes.push_back(n);

  const auto index_of = [&](std::int64_t n) {
    return std::lower_bound(sizes.begin(), sizes.end(), n) - sizes.begin();
  };
  // sizes[fails] fails, sizes[other] does not (-1: there is none).
  std::ptrdiff_t fails = std::ssize(sizes) - 1, other = -1;
  const std::optional<std::size_t> first = first_failing(probes);
  const std::size_t tried = first.value_or(probes.size());
  if (first) fails = index_of(probes[*first]);
  if (tried > 0) other = index_of(probes[tried - 1]);
  while (fails - other > 1) {
    const std::ptrdiff_t middle = other + (fails - other) / 2;
    (first_failing({sizes[static_cast<std::size_t>(middle)]}) ? fails : other) = middle;
  }
  return sizes[static_cast<std::size_t>(fails)];
}

std::vector<int> necessary_parts(int parts, const FirstSet& first_failing) {
  std::vector<int> kept(static_cast<std::size_t>(parts));
  std::iota(kept.begin(), kept.end(), 0);
  if (kept.empty() || first_failing(1, [](std::size_t) { return std::vector<int>(); })) return {};
  for (std::size_t pieces = 2; kept.size() > 1;) {
    const auto edge = [&](std::size_t piece) {
      return kept.begin() + static_cast<std::ptrdiff_t>(kept.size() * piece / pieces);
    };
    // Each piece alone, then all but each; of two pieces these are the same.
    const SetOfParts candidate = [&](std::size_t i) {
      if (i < pieces) return std::vector<int>(edge(i), edge(i + 1));
      std::vector<int> rest(kept.begin(), edge(i - pieces));
      rest.insert(rest.end(), edge(i - pieces + 1), kept.end());
      return rest;
    };
    const std::optional<std::size_t> found = first_failing(pieces == 2 ? 2 : 2 * pieces, candidate);
    if (found) {
      const bool is_piece = *found < pieces;
      kept = candidate(*found);
      pieces = is_piece ? 2 : std::max<std::size_t>(pieces - 1, 2);
    } else if (pieces >= kept.size()) {
      break;
    } else {
      pieces = std::min(2 * pieces, kept.size());
    }
  }
  return kept;
}

}  // namespace attn_diag::shrink

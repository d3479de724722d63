#include "harness/diagnose/sample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attn_diag::matching {

std::vector<std::int64_t> spread(const std::vector<std::int64_t>& from, int n) {
  const auto size = static_cast<std::int64_t>(from.size());
  if (size <= n) return from;
  std::vector<std::uint8_t> taken(from.size(), 0);
  std::vector<std::int64_t> chosen;
  chosen.reserve(static_cast<std::size_t>(n));
  const auto take = [&](std::int64_t at) {
    // The next one that is free.
    while (taken[static_cast<std::size_t>(at)] != 0) at = (at + 1) % size;
    taken[static_cast<std::size_t>(at)] = 1;
    chosen.push_back(from[static_cast<std::size_t>(at)]);
  };
  // Steps of the golden ratio meet every place of tiles that are powers of two; the ends are told apart by many
  // bugs (the first query sees one key, the last tile is partial).
  double place = 0.5;
  for (int i = 0; i < n; ++i) {
    if (i == 3) {
      take(size - 1);
    } else if (i == 5) {
      take(0);
    } else {
      take(std::min(size - 1, static_cast<std::int64_t>(place * static_cast<double>(size))));
    }
    place = std::fmod(place + std::numbers::phi - 1, 1.0);
  }
  return chosen;
}

std::vector<std::int64_t> choose_rows(const Evidence& evidence, int wrong, int right) {
  std::vector<std::int64_t> bad, good;
  for (std::int64_t row = 0; row < evidence.rows(); ++row)
    (evidence.wrong(row) ? bad : good).push_back(row);
  bad = spread(bad, wrong);
  good = spread(good, right);
  std::vector<std::int64_t> rows;
  rows.reserve(bad.size() + good.size());
  std::size_t b = 0, g = 0;
  while (b < bad.size() || g < good.size()) {
    for (int i = 0; i < 3 && b < bad.size(); ++i) rows.push_back(bad[b++]);
    if (g < good.size()) rows.push_back(good[g++]);
  }
  return rows;
}

}  // namespace attn_diag::matching

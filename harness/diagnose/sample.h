// Which rows are looked at first: a few, spread over batches, heads, tiles and places in a tile.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/diagnose/evidence.h"

namespace attn_diag::matching {

inline constexpr int kSampleWrong = 48;
inline constexpr int kSampleRight = 16;

// Up to that many wrong and right rows (flat numbers), three wrong ones to one right one, so that any
// first part of the list is spread as the whole is. The same for the same evidence.
std::vector<std::int64_t> choose_rows(const Evidence& evidence, int wrong = kSampleWrong,
                                      int right = kSampleRight);

// Up to n of `from`, spread: those at multiples of the golden ratio, modulo one, of its length.
std::vector<std::int64_t> spread(const std::vector<std::int64_t>& from, int n);

}  // namespace attn_diag::matching

// Comparing some rows of a capture: for long sequences, all of them would take the reference hours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"

namespace attn_diag {

// Absolute, half open; the queries ascend.
struct SomeRows {
  std::int32_t batch_begin = 0, batch_end = 0, head_begin = 0, head_end = 0;
  std::vector<std::int32_t> queries;
  bool sampled = false;  // they stand for the others

  std::int64_t count() const;
};

// The first and the last of `extent` queries and one, drawn by `seed`, from each of equal parts between: `wanted`
// queries, or all of them if there are fewer.
std::vector<std::int32_t> sampled_queries(std::int64_t extent, std::int64_t wanted,
                                          std::uint64_t seed);

// As compare_with_reference, for these rows only: the reference computes no others, O(seqlen_k * head_dim) each. Throws
// Error for rows that the capture does not have.
Comparison compare_some_rows(const Capture& capture, const SomeRows& rows,
                             const Tolerance& tolerance, int threads = 0);

// "Judged are 64 of 131,072 queries, of 8 of 8 heads and 1 of 1 batch entries: what is wrong elsewhere is not seen.",
// or for a sample "... is seen only where it breaks an invariant."
std::string some_rows_note(const SomeRows& rows, const Problem& problem);

}  // namespace attn_diag

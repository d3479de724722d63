// Batch entries one by one, for cases whose entries differ in their number of keys.
#pragma once

#include <cstdint>
#include <vector>

#include "attn_diag/harness/compare.h"

namespace attn_diag {

// Entry `batch` of a case, with the first `keys` of its keys, at least 1: q, k, v, o and lse, and what the formula
// has besides. Causal masks of alignment bottom_right, and windows, end at its own last key.
Capture entry_of(const Capture& capture, std::int64_t batch, std::int32_t keys);
reference::Extras entry_of(const reference::Extras& extras, const Problem& problem,
                           std::int64_t batch, std::int32_t keys);

// Compares o and lse, each batch entry against the formula of its first kv_lens[entry] keys. An entry without keys
// has o = 0 and lse = -inf. Keys behind these are not read.
Comparison compare_entries(const Capture& capture, const std::vector<std::int32_t>& kv_lens,
                           const reference::Extras& extras, const Tolerance& tolerance,
                           int threads = 0);

}  // namespace attn_diag

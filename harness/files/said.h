// What files say beside their arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/files.h"
#include "harness/files/array.h"

namespace attn_diag::files {

// The user's word before the file's. Throws Error for values that make no sense, and where a file says
// two things.
struct Said {
  std::optional<Layout> layout;
  std::optional<double> softmax_scale;
  std::optional<std::string> mask;  // "causal", ...
  double softcap = 0;
  std::vector<std::int32_t> kv_lens;
};
Said what_is_said(const Settings& settings, const ForeignHints& hints);

// The mask of that text. A bare "causal" needs sizes that agree. Throws Error.
Mask mask_of(const std::string& text, std::int64_t seqlen_q, std::int64_t seqlen_k);

// "5,17,64". Throws Error that names `what`.
std::vector<std::int32_t> lengths_of(const std::string& text, const std::string& what);
// A length for each batch entry, of 0 to Sk keys; and a causal mask that says how it lies, `said`. Throws Error.
void check_lengths(const std::vector<std::int32_t>& kv_lens, const Problem& problem,
                   const std::string& said);

}  // namespace attn_diag::files

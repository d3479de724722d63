// What files say beside their arrays.
#pragma once

#include <optional>
#include <string>

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
};
Said what_is_said(const Settings& settings, const ForeignHints& hints);

// The mask of that text. A bare "causal" needs sizes that agree. Throws Error.
Mask mask_of(const std::string& text, std::int64_t seqlen_q, std::int64_t seqlen_k);

}  // namespace attn_diag::files

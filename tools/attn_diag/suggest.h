// "Did you mean ...?"
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "harness/base/close_names.h"

namespace attn_diag::cli {

// " Did you mean fa1?", or "" if nothing is near.
inline std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names) {
  const std::vector<std::string> close = close_names(std::string(typed), names);
  return close.empty() ? "" : fmt::format(" Did you mean {}?", fmt::join(close, " or "));
}

}  // namespace attn_diag::cli

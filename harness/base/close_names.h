// "Did you mean ...?"
#pragma once

#include <string>
#include <vector>

namespace attn_diag {

// Those of `names` that look like a misspelling of `wanted`, closest first, at most three.
std::vector<std::string> close_names(const std::string& wanted,
                                     const std::vector<std::string>& names);

}  // namespace attn_diag

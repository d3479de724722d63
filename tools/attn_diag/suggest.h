// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::cli {

// " Did you mean fa1?", or "" if nothing is near.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& candidates);

// Edits (insert, delete, replace, swap of neighbours) that turn a into b.
int edit_distance(std::string_view a, std::string_view b);

}  // namespace attn_diag::cli

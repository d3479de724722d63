// Indices in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attn_diag {

// "0-3, 7, 9-12"; cut after eight ranges. `sorted` is ascending.
std::string index_ranges(const std::vector<std::int64_t>& sorted);

}  // namespace attn_diag

// Single numbers of a file, as text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace attn_diag::files {

// `kind` as numpy has it: f, i, u or b (bool). None for other kinds and widths.
std::optional<std::string> number_text(char kind, std::size_t size, const void* little_endian);

}  // namespace attn_diag::files

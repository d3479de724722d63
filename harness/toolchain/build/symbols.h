// What a shared library defines for others, read from its file: nothing of it is loaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace attn_diag::build {

// The bytes of an object that it exports; nullopt: it exports none of the name, or the file is no shared library.
std::optional<std::string> symbol_bytes(const std::filesystem::path& library,
                                        const std::string& symbol);

}  // namespace attn_diag::build

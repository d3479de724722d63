// A user's source as tokens, without preprocessing it: it may need headers that are not here.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/toolchain/source/token.h"

namespace attn_diag::adapt {

struct Code {
  std::deque<std::string> texts;  // what the tokens point into; the source itself is the first
  // Without directives, and without what conditionals that can be decided leave out. Its own headers
  // stand where they are included.
  source::TokenList list;
  std::map<std::string, std::string> macros;  // object-like
  std::map<std::string, std::string> calls;   // function-like macros: what they stand for
  std::vector<std::string> includes;          // all, as written: "x.h", <x.h>
  std::vector<std::string> missing;           // own headers ("x.h") that are not beside the source
};

// Throws Error for a file that cannot be read or is not C++.
Code read_code(const std::filesystem::path& source);

// Absolute, without links, "." and "..". A pipe, such as a shell's <(...), keeps its name, which leads nowhere.
std::filesystem::path whole_path(const std::filesystem::path& path);

// The value of an integer expression, given what names stand for; nullopt where it has none here.
using Lookup = std::optional<std::int64_t> (*)(const std::string& name, const void* context);
std::optional<std::int64_t> evaluate(std::string_view expression, Lookup lookup,
                                     const void* context);

}  // namespace attn_diag::adapt

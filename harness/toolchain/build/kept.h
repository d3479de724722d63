// For builds of many copies of the same sources, each with another edit: what is the same is compiled once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/toolchain/build/build.h"

namespace attn_diag::build {

// Where the object of a unit's translated text lies if it was compiled before, in whichever copy; else where to put it.
std::filesystem::path kept_object(const KeptObjects& kept, const std::vector<std::string>& compiler,
                                  const std::string& text);

// What a unit includes before its own first line, as a precompiled header, and the rest of its text.
struct PrecompiledBeginning {
  std::filesystem::path header;
  std::string rest;
};
// For clang. nullopt: it begins with nothing, or that cannot be compiled by itself.
std::optional<PrecompiledBeginning> precompiled_beginning(const KeptObjects& kept,
                                                          const std::vector<std::string>& compiler,
                                                          const std::filesystem::path& file,
                                                          const std::string& text);

}  // namespace attn_diag::build

// Completions for shells, from the table of commands and flags. Scripts for source, or for a file where the shell looks.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tools/attn_diag/flags.h"

namespace attn_diag::cli {

// What attn-diag completions makes.
inline constexpr std::array<std::string_view, 5> kCompletionForms = {"bash", "zsh", "fish", "man",
                                                                     "kernels"};

std::string bash_completions(const std::vector<CommandText>& commands);
std::string zsh_completions(const std::vector<CommandText>& commands);
std::string fish_completions(const std::vector<CommandText>& commands);

}  // namespace attn_diag::cli

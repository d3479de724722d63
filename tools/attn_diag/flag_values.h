// Which values a flag takes, where they can be listed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::cli {

// What completes the value of a flag ("--dtype") or of a command's positional ("explain").
struct FlagValues {
  enum class Kind {
    kNone,    // a number, or free text
    kWords,   // one of `words`
    kKernel,  // what attn-diag completions kernels prints, or a library
    kFile,
  };
  Kind kind = Kind::kNone;
  std::vector<std::string> words;
};

// `type` as --help shows it, "FILE" or "DIR" or nothing.
FlagValues flag_values(std::string_view command, std::string_view flag, std::string_view type);

}  // namespace attn_diag::cli

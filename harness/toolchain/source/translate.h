// From CUDA C++ to what g++ and clang++ compile against the host executor's stand-in headers.
//
// Works on preprocessed text: macros and conditionals are done, and line markers tell file and line.
// Every token stays on its line, so that errors, __LINE__, debuggers and reports point at the user's
// file. Replaced are launches, shared memory, CUDA's qualifiers, inline PTX and the pragmas of nvcc.
// Parts from system headers are left as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/toolchain/source/source_error.h"

namespace attn_diag::source {

enum class ItemKind { kLaunch, kSharedArray, kDynamicShared, kAsm, kLaunchBounds, kPragma };

// Something that was translated.
struct Item {
  ItemKind kind = ItemKind::kLaunch;
  std::string file;
  int line = 0;
  std::string text;  // as written, on one line
  // The instructions of inline PTX.
  std::vector<std::string> instructions = {};
};

struct Translation {
  std::string text;
  std::vector<Item> items;         // by place in the text
  std::vector<Diagnostic> errors;  // what could not be translated; if any, `text` is empty
};

// `file` is the name of the text until its first line marker.
Translation translate(std::string_view preprocessed, std::string_view file);

}  // namespace attn_diag::source

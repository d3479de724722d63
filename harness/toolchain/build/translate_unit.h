// One source file: preprocessed by the compiler, then through the source pass.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/toolchain/source/translate.h"

namespace attn_diag::build {

struct Unit {
  std::string preprocessor_messages;  // warnings and errors of the compiler, as it wrote them
  bool preprocessed = false;
  source::Translation translation;
};

// `compiler`: words that preprocess the unit when "-E" is behind them, in `folder`; empty: here.
Unit translate_unit(const std::vector<std::string>& compiler, const std::filesystem::path& file,
                    const std::filesystem::path& folder = {});

// What a compiler says of a translated text, with columns that lie within the lines of the source alone: what the source
// pass puts into a line moves the others, and none of those is told, nor marked below the line. Paths are of `folder`; empty: here.
std::string with_columns_of_source(const std::string& messages,
                                   const std::filesystem::path& folder = {});

// "x.cu:12: error: ..." and the line itself, as compilers write it.
std::string diagnostic_text(const source::Diagnostic& diagnostic);

}  // namespace attn_diag::build

#include "harness/toolchain/build/translate_unit.h"

#include <fmt/format.h>

#include <fstream>

#include "harness/base/process.h"

namespace attn_diag::build {

Unit translate_unit(const std::vector<std::string>& compiler, const std::filesystem::path& file,
                    const std::filesystem::path& folder) {
  std::vector<std::string> words = compiler;
  words.emplace_back("-E");
  ProcessResult result = run_process(words, {folder});
  Unit unit;
  unit.preprocessor_messages = std::move(result.err);
  unit.preprocessed = result.ok();
  if (unit.preprocessed) unit.translation = source::translate(result.out, file.string());
  return unit;
}

std::string diagnostic_text(const source::Diagnostic& diagnostic) {
  std::string text =
      fmt::format("{}:{}: error: {}\n", diagnostic.file, diagnostic.line, diagnostic.message);
  std::ifstream file(diagnostic.file);
  std::string line;
  for (int i = 0; i < diagnostic.line && std::getline(file, line); ++i) {
  }
  if (file) text += fmt::format("{:5} | {}\n", diagnostic.line, line);
  return text;
}

}  // namespace attn_diag::build

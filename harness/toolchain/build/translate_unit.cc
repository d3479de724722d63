#include "harness/toolchain/build/translate_unit.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

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

namespace {

// The lengths of a file's lines; none where it cannot be read.
std::vector<std::size_t> line_lengths(const std::filesystem::path& path) {
  std::vector<std::size_t> lengths;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lengths.push_back(line.size());
  return lengths;
}

}  // namespace

std::string with_columns_of_source(const std::string& messages,
                                   const std::filesystem::path& folder) {
  std::map<std::string, std::vector<std::size_t>> files;
  std::istringstream in(messages);
  std::string out;
  bool moved = false;  // the place that was told last
  for (std::string line; std::getline(in, line);) {
    // "x.cu:12:345: error: ..."
    const std::size_t path_end = line.find(':');
    int number = 0, column = 0, end = 0;
    if (path_end != line.npos && path_end > 0 && line[0] != ' ' &&
        std::sscanf(line.c_str() + path_end, ":%7d:%7d:%n", &number, &column, &end) == 2 &&
        end > 0) {
      const auto [known, is_new] = files.try_emplace(line.substr(0, path_end));
      if (is_new) known->second = line_lengths(folder / known->first);
      moved = number >= 1 && static_cast<std::size_t>(number) <= known->second.size() &&
              static_cast<std::size_t>(column) >
                  known->second[static_cast<std::size_t>(number) - 1] + 1;
      if (moved) line.replace(path_end, static_cast<std::size_t>(end), fmt::format(":{}:", number));
    } else if (moved && line.find('^') != line.npos &&
               line.find_first_not_of(" |~^") == line.npos) {
      continue;
    }
    out += line + '\n';
  }
  return out;
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

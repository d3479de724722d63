#include "harness/toolchain/build/request_record.h"

#include <array>
#include <cstdio>
#include <utility>

#include "harness/toolchain/build/symbols.h"

namespace attn_diag::build {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSymbol = "attn_diag_build_request";
constexpr std::string_view kVersion = "request 1";

// The record: a line for each value, "define N=4". A value may hold anything, so "\\" and "\n" stand for what
// would end the line.
using Lines = std::vector<std::pair<std::string, std::string>>;

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\')
      text += "\\\\";
    else if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

std::string plain(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size())
      value += text[i];
    else
      value += text[++i] == 'n' ? '\n' : text[i];
  }
  return value;
}

Lines lines_of(const BuildRequest& request) {
  const auto path = [](const fs::path& given) {
    return fs::absolute(given).lexically_normal().string();
  };
  Lines lines;
  for (const fs::path& source : request.sources) lines.emplace_back("source", path(source));
  if (!request.adapter.empty()) lines.emplace_back("adapter", path(request.adapter));
  lines.emplace_back("backend", request.backend == Backend::kCuda ? "cuda" : "host");
  for (const std::string& folder : request.includes) lines.emplace_back("include", path(folder));
  for (const std::string& define : request.defines) lines.emplace_back("define", define);
  for (const std::string& flag : request.compiler_flags) lines.emplace_back("flag", flag);
  lines.emplace_back("standard", request.standard);
  lines.emplace_back("arch", request.arch);
  // A name is looked for in PATH, then as now.
  const auto program = [&](const std::string& given) {
    return given.find('/') == given.npos ? given : path(given);
  };
  if (request.backend == Backend::kHost)
    lines.emplace_back("compiler", program(find_compiler(request)));
  else
    lines.emplace_back("nvcc", program(find_nvcc(request).value_or("")));
  lines.emplace_back("folder", path(request.folder.empty() ? fs::current_path() : request.folder));
  lines.emplace_back("lockstep", request.lockstep ? "yes" : "no");
  lines.emplace_back("ask_nvcc", request.ask_nvcc ? "yes" : "no");
  return lines;
}

// False for a key that only another version knows.
bool take(BuildRequest& request, std::string_view key, const std::string& value) {
  if (key == "source")
    request.sources.emplace_back(value);
  else if (key == "adapter")
    request.adapter = value;
  else if (key == "backend")
    request.backend = value == "cuda" ? Backend::kCuda : Backend::kHost;
  else if (key == "include")
    request.includes.push_back(value);
  else if (key == "define")
    request.defines.push_back(value);
  else if (key == "flag")
    request.compiler_flags.push_back(value);
  else if (key == "standard")
    request.standard = value;
  else if (key == "arch")
    request.arch = value;
  else if (key == "compiler")
    request.compiler = value;
  else if (key == "nvcc")
    request.nvcc = value;
  else if (key == "folder")
    request.folder = value;
  else if (key == "lockstep")
    request.lockstep = value == "yes";
  else if (key == "ask_nvcc")
    request.ask_nvcc = value == "yes";
  else
    return false;
  return true;
}

}  // namespace

std::string request_code(const BuildRequest& request) {
  std::string text(kVersion);
  text += '\n';
  for (const auto& [key, value] : lines_of(request)) text += key + ' ' + escaped(value) + '\n';
  // As numbers: no value can be read as anything else.
  std::string code =
      "// Generated.\nextern \"C\" {\nextern __attribute__((visibility(\"default\"))) const "
      "unsigned char ";
  code += kSymbol;
  code += "[];\nconst unsigned char ";
  code += kSymbol;
  code += "[] = {";
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::array<char, 8> number{};
    std::snprintf(number.data(), number.size(), "%s%u,", i % 32 == 0 ? "\n" : "",
                  static_cast<unsigned char>(text[i]));
    code += number.data();
  }
  return code + "\n};\n}\n";
}

std::optional<BuildRequest> request_of(const fs::path& library) {
  const std::optional<std::string> text = symbol_bytes(library, kSymbol);
  if (!text) return std::nullopt;
  BuildRequest request;
  request.output = library;
  bool first = true;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const std::string_view line = std::string_view(*text).substr(begin, end - begin);
    begin = end + 1;
    if (std::exchange(first, false)) {
      if (line != kVersion) return std::nullopt;
      continue;
    }
    const std::size_t space = line.find(' ');
    if (space == line.npos) return std::nullopt;
    if (!take(request, line.substr(0, space), plain(line.substr(space + 1)))) return std::nullopt;
  }
  return request;
}

}  // namespace attn_diag::build

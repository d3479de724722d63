#include "harness/toolchain/build/build_info.h"

#include <xxhash.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>

namespace attn_diag::build {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The prerequisites of a make rule: words after the first ": " (or " : "), in which "\ " is a space,
// "$$" a dollar and a backslash at the end of a line joins it to the next.
std::vector<std::string> prerequisites(const std::string& rule) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(word);
    word.clear();
  };
  for (std::size_t i = 0; i < rule.size(); ++i) {
    const char c = rule[i];
    const char next = i + 1 < rule.size() ? rule[i + 1] : '\0';
    if (c == '\\' && (next == '\n' || next == ' ' || next == '#')) {
      ++i;
      if (next == '\n')
        finish();
      else
        word += next;
    } else if (c == '$' && next == '$') {
      ++i;
      word += '$';
    } else if (c == ' ' || c == '\n' || c == '\t') {
      finish();
    } else {
      word += c;
    }
  }
  finish();
  const std::size_t colon = words.size() > 1 && words[1] == ":" ? 1 : 0;
  if (words.size() <= colon || words[colon].back() != ':')
    throw std::runtime_error("not a list of included files: " + rule.substr(0, 60));
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(colon) + 1);
  return words;
}

std::string quote(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

bool lies_below(const fs::path& path, const fs::path& root) {
  const fs::path relative = path.lexically_relative(root);
  return !relative.empty() && *relative.begin() != "..";
}

// Relative to root if the file lies below it.
std::string shown_path(const fs::path& path, const fs::path& root) {
  return lies_below(path, root) ? path.lexically_relative(root).string() : path.string();
}

}  // namespace

std::string escape_for_make(const std::string& path) {
  std::string escaped;
  for (char c : path) {
    if (c == ' ' || c == '#') escaped += '\\';
    if (c == '$') escaped += '$';
    escaped += c;
  }
  return escaped;
}

std::string hash_of(std::string_view bytes) {
  char hash[32];
  std::snprintf(hash, sizeof hash, "0x%016llx",
                static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return hash;
}

std::string hash_of_file(const fs::path& file) { return hash_of(read(file)); }

std::vector<fs::path> included_files(const fs::path& list, const fs::path& folder) {
  std::vector<fs::path> files;
  for (const std::string& file : prerequisites(read(list)))
    files.push_back(fs::weakly_canonical(folder / file));
  return files;
}

BuildInfoText build_info(const BuildInfoRequest& request) {
  const fs::path root = fs::weakly_canonical(request.root);
  const fs::path exclude =
      request.exclude.empty() ? fs::path() : fs::weakly_canonical(request.exclude);
  std::set<std::string> files;  // absolute, without repetition, in a fixed order
  for (const fs::path& list : request.header_lists) {
    for (const fs::path& path : included_files(list, request.folder))
      if (exclude.empty() || !lies_below(path, exclude)) files.insert(path.string());
  }
  if (files.empty()) throw std::runtime_error("no list of included files was given");

  std::ostringstream code;
  code << "// Generated.\n#include \"attn_diag/kernels/build_info.h\"\n\n"
       << "namespace {\nconstexpr attn_diag::SourceFile kSources[] = {\n";
  for (const std::string& file : files) {
    code << "    {" << quote(file) << ",\n     " << quote(shown_path(file, root)) << ", "
         << hash_of_file(file) << "ull},\n";
  }
  code << "};\nconstexpr attn_diag::BuildInfo kBuildInfo = {\n    " << files.size()
       << ",\n    kSources,\n    " << quote(request.compiler) << ",\n    " << quote(request.flags)
       << ",\n    " << quote(request.backend) << ",\n    " << quote(request.architectures)
       << ",\n    " << (request.lockstep ? "true" : "false") << ",\n    " << quote(request.fault)
       << "};\n}  // namespace\n\n"
       << "extern \"C\" const attn_diag::BuildInfo* attn_diag_build_info() { return &kBuildInfo; "
          "}\n";
  return {code.str(), {files.begin(), files.end()}};
}

}  // namespace attn_diag::build

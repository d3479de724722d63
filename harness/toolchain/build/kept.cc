#include "harness/toolchain/build/kept.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "harness/base/process.h"
#include "harness/toolchain/build/build_info.h"
#include "harness/toolchain/build/scratch.h"

namespace attn_diag::build {

namespace fs = std::filesystem;

namespace {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string key(const std::vector<std::string>& compiler, const std::string& text) {
  std::string all;
  for (const std::string& word : compiler) all += word + '\n';
  return hash_of(all + text);
}

}  // namespace

fs::path kept_object(const KeptObjects& kept, const std::vector<std::string>& compiler,
                     const std::string& text) {
  return kept.folder / (key(compiler, replaced(text, kept.copy, "")) + ".o");
}

std::optional<PrecompiledBeginning> precompiled_beginning(const KeptObjects& kept,
                                                          const std::vector<std::string>& compiler,
                                                          const fs::path& file,
                                                          const std::string& text) {
  // Where the preprocessor comes back from what -include names.
  const std::string back = fmt::format("\n# 1 \"{}\" ", file.string());
  const std::size_t at = text.find(back + "2\n");
  if (at == text.npos) return std::nullopt;
  const std::string beginning = replaced(text.substr(0, at + 1), file.string(), "unit");
  const fs::path header = kept.folder / (key(compiler, beginning) + ".pch");
  // Units that are compiled at the same time begin alike.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (!fs::exists(header)) {
    const std::string own = fmt::format("{}.{}", header.string(), ::getpid());
    write_file(own + ".ii", beginning);
    // What is included is in the text already.
    std::vector<std::string> words;
    for (std::size_t i = 0; i < compiler.size(); ++i)
      if (compiler[i] == "-include")
        ++i;
      else
        words.push_back(compiler[i]);
    words.insert(words.end(), {"-x", "c++-header", own + ".ii", "-o", own + ".pch"});
    if (!run_process(words).ok()) return std::nullopt;
    // Another process may do the same at the same time. clang wants to find the text again.
    std::error_code error;
    fs::rename(own + ".pch", header, error);
    if (!fs::exists(header)) return std::nullopt;
  }
  return PrecompiledBeginning{
      header, fmt::format("# 1 \"{}\"\n{}", file.string(), text.substr(at + back.size() + 2))};
}

}  // namespace attn_diag::build

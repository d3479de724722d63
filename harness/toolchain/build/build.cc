#include "harness/toolchain/build/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>

#include "attn_diag/harness/error.h"
#include "harness/base/process.h"
#include "harness/toolchain/build/build_steps.h"
#include "harness/toolchain/source/token.h"

namespace attn_diag::build {

namespace fs = std::filesystem;

namespace {

std::string read_source(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || !fs::is_regular_file(file))
    throw Error(fmt::format("There is no source file '{}': expected CUDA C++, such as kernel.cu.",
                            file.string()));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The file that `#include "x.cu"` in `from` names: the first in its folder and the folders of -I; empty: there is none.
fs::path included_file(const BuildRequest& request, const fs::path& from,
                       std::string_view directive) {
  const std::size_t open = directive.find_first_of("\"<");
  if (directive.find("include") == std::string_view::npos || open == std::string_view::npos)
    return {};
  const std::size_t close = directive.find(directive[open] == '<' ? '>' : '"', open + 1);
  if (close == std::string_view::npos) return {};
  const fs::path name(directive.substr(open + 1, close - open - 1));
  std::vector<fs::path> folders = {from.parent_path()};
  for (const std::string& folder : include_folders(request)) folders.emplace_back(folder);
  for (const fs::path& folder : folders)
    if (fs::is_regular_file(folder / name)) return folder / name;
  return {};
}

// Those that a file names itself.
std::vector<fs::path> includes_of(const BuildRequest& request, const fs::path& file) {
  const std::string text = read_source(file);
  std::vector<fs::path> out;
  for (const source::Token& token : source::tokenize(text, file.string()).tokens)
    if (token.kind == source::TokenKind::kDirective)
      if (fs::path one = included_file(request, file, token.text); !one.empty())
        out.push_back(std::move(one));
  return out;
}

// Of two kernels of one name the linker takes either: a file that includes another kernel.cu than the one that is given
// would run that.
void check_names(const BuildRequest& request) {
  std::vector<fs::path> files = request.sources;
  if (!request.adapter.empty()) files.push_back(request.adapter);
  for (const fs::path& file : files)
    for (const fs::path& included : includes_of(request, file))
      for (const fs::path& source : request.sources)
        if (included.filename() == source.filename() &&
            fs::weakly_canonical(source) != fs::weakly_canonical(file) &&
            fs::weakly_canonical(source) != fs::weakly_canonical(included))
          throw Error(
              fmt::format("'{0}' includes '{1}', which is not the '{2}' that is given: the kernel "
                          "of the former would run. Expected "
                          "one of them; give '{1}', or let '{0}' include '{2}'.",
                          file.string(), included.lexically_normal().string(), source.string()));
}

void check(const BuildRequest& request) {
  if (request.sources.empty() && request.adapter.empty())
    throw Error("No source was given. Expected attn-diag build kernel.cu -o kernel.so.");
  for (const fs::path& source : request.sources) read_source(source);
  if (!request.adapter.empty()) read_source(request.adapter);
  check_names(request);
  if (request.write_files && request.output.extension() != ".so")
    throw Error(fmt::format(
        "-o '{}': expected the library to write, with a name that ends in .so, as -o my_kernel.so.",
        request.output.string()));
  const fs::path folder = request.output.parent_path();
  if (request.write_files && !folder.empty() && !fs::is_directory(folder))
    throw Error(
        fmt::format("-o '{}': there is no folder '{}'.", request.output.string(), folder.string()));
  arch_number(request.arch);
}

// For compilers that run elsewhere.
BuildRequest with_absolute_paths(BuildRequest request) {
  for (fs::path& source : request.sources) source = fs::absolute(source);
  if (!request.adapter.empty()) request.adapter = fs::absolute(request.adapter);
  if (!request.output.empty()) request.output = fs::absolute(request.output);
  for (std::string& folder : request.includes) folder = fs::absolute(folder).string();
  return request;
}

}  // namespace

std::string arch_number(const std::string& arch) {
  std::string number = arch.starts_with("sm_") ? arch.substr(3) : "";
  if (!number.empty() && (number.back() == 'a' || number.back() == 'f')) number.pop_back();
  bool digits = number.size() >= 2 && number.size() <= 3;
  for (const char c : number) digits &= std::isdigit(static_cast<unsigned char>(c)) != 0;
  if (!digits)
    throw Error(fmt::format(
        "--arch {}: expected an architecture of a GPU, as sm_80, sm_90 or sm_90a.", arch));
  return number;
}

std::size_t static_shared_limit(const std::string& arch) {
  // What ptxas says of each: 48 KB, but all that a block can have where code is for one architecture
  // alone (sm_90a, sm_100f, ...).
  if (arch.empty() || (arch.back() != 'a' && arch.back() != 'f')) return 48 * 1024;
  return (arch_number(arch)[0] == '1' && arch_number(arch)[1] == '2' ? 99 : 227) * 1024;
}

std::string compiler_version(const std::string& compiler) {
  const std::string text = run_process({compiler, "--version"}).out;
  const std::string first = text.substr(0, text.find('\n'));
  const std::string version = run_process({compiler, "-dumpfullversion", "-dumpversion"}).out;
  const std::string name = first.find("clang") != std::string::npos ? "Clang " : "GNU ";
  return name + version.substr(0, version.find('\n'));
}

std::vector<std::string> include_folders(const BuildRequest& request) {
  std::vector<std::string> folders = request.includes;
  if (request.adapter.empty()) return folders;
  for (const fs::path& source : request.sources) {
    const fs::path folder = source.has_parent_path() ? source.parent_path() : ".";
    if (folder != request.adapter.parent_path() &&
        std::find(folders.begin(), folders.end(), folder.string()) == folders.end())
      folders.push_back(folder.string());
  }
  return folders;
}

std::vector<fs::path> units_of(const BuildRequest& request) {
  if (request.adapter.empty()) return request.sources;
  std::vector<fs::path> included = includes_of(request, request.adapter);
  included.push_back(request.adapter);
  std::vector<fs::path> units = {request.adapter};
  for (const fs::path& source : request.sources) {
    const fs::path file = fs::weakly_canonical(source);
    const auto is_it = [&](const fs::path& one) { return fs::weakly_canonical(one) == file; };
    if (std::any_of(included.begin(), included.end(), is_it)) continue;
    units.push_back(source);
  }
  return units;
}

BuildRecord build_library(const BuildRequest& given, const Settings& settings) {
  check(given);
  const BuildRequest request = given.folder.empty() ? given : with_absolute_paths(given);
  BuildRecord record;
  if (request.backend == Backend::kHost)
    build_for_host(request, settings, record);
  else
    build_for_cuda(request, settings, record);
  if (record.ok && !record.libraries.empty() &&
      !exports_symbol(record.libraries.front(), "attn_diag_kernel_library"))
    record.missing_adapter = true;
  return record;
}

}  // namespace attn_diag::build

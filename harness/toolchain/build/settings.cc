#include "harness/toolchain/build/settings.h"

#include <fstream>
#include <sstream>
#include <vector>

#include "attn_diag/harness/error.h"
#include "harness/base/process.h"

namespace attn_diag::build {

namespace fs = std::filesystem;

Settings load_settings(const fs::path& file) {
  std::ifstream in(file);
  if (!in)
    throw Error("'" + file.string() +
                "' cannot be read, which says how kernels are compiled. It comes with the package: "
                "call attn-diag from the build tree or from where it was installed.");
  Settings settings;
  const auto resolve = [&](const std::string& path) {
    return (file.parent_path() / path).lexically_normal();
  };
  for (std::string line; std::getline(in, line);) {
    std::istringstream text(line);
    std::string group;
    text >> group;
    std::string rest;
    std::getline(text >> std::ws, rest);
    if (group == "executor") settings.executor = resolve(rest);
    if (group == "instrumenter") settings.instrumenter = rest;
    if (group == "plugin") settings.plugin = resolve(rest);
    if (group == "watch-plugin") settings.watch_plugin = resolve(rest);
    if (group == "leave-out-plugin") settings.leave_out_plugin = resolve(rest);
    if (group == "include") settings.includes.push_back(resolve(rest));
    std::vector<std::string>* options = group == "preprocess"     ? &settings.preprocess
                                        : group == "compile"      ? &settings.compile
                                        : group == "instrumented" ? &settings.instrumented
                                        : group == "watched"      ? &settings.watched
                                                                  : nullptr;
    if (options == nullptr) continue;
    std::istringstream each(rest);
    for (std::string option; each >> option;) options->push_back(option);
  }
  if (settings.executor.empty() || settings.includes.empty() || settings.preprocess.empty() ||
      settings.instrumented.empty())
    throw Error("'" + file.string() +
                "' is not whole: it must name the executor, the headers and the options of a "
                "kernel build. Install the package anew.");
  std::vector<fs::path> parts = settings.includes;
  parts.push_back(settings.executor);
  for (const fs::path& part : parts)
    if (!fs::exists(part))
      throw Error("kernels cannot be compiled: '" + part.string() + "' is not there, which '" +
                  file.string() +
                  "' names. The package was built or installed in part: build all of it "
                  "(cmake --build), and install it if you do (cmake --install, without an error).");
  return settings;
}

std::string Settings::no_instrumenter() const {
  const std::string remedy =
      " Install clang and llvm-dev of one version (tools/setup does) and configure anew.";
  if (instrumenter.empty())
    return "attn-diag was configured without clang++ and the headers of its LLVM, which instrument "
           "kernels." +
           remedy;
  if (!is_program(instrumenter))
    return "'" + instrumenter + "', which instruments kernels, is no longer there." + remedy;
  for (const fs::path& needed : {plugin, watch_plugin, leave_out_plugin})
    if (!fs::exists(needed))
      return "'" + needed.string() +
             "', a plugin that instruments kernels, is not there: build all of the package.";
  return "";
}

fs::path settings_file_of_program() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path() /
         "lib/attn_diag/kernel_build.conf";
}

}  // namespace attn_diag::build

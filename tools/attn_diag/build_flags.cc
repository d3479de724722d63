#include "tools/attn_diag/build_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace attn_diag::cli {

void add_build_flags(CLI::App& app, BuildFlags& flags) {
  const auto add = [&](const char* flag, auto& to, const char* help, const char* type) {
    app.add_option(flag, to, help)->group("What to build, and how")->type_name(type);
  };
  const auto add_switch = [&](const char* flag, bool& to, const char* help) {
    app.add_flag(flag, to, help)->group("What to build, and how");
  };
  add("--adapter", flags.adapter, "The file that says how to call the kernels, if not a source",
      "FILE");
  app.add_option("-I,--include", flags.includes, "A folder with headers; may be repeated")
      ->group("What to build, and how")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("-D,--define", flags.defines, "A macro, as NAME or NAME=VALUE; may be repeated")
      ->group("What to build, and how")
      ->type_name("")
      ->allow_extra_args(false);
  add("--std", flags.standard,
      "C++ standard: c++17 (of nvcc; the host takes c++20), c++20 or c++23 (c++20)", "");
  add("--arch", flags.arch, "The GPU that sources are compiled for (sm_90)", "");
  add_switch("--explain", flags.explain, "List what was translated, and what is unsupported");
  add_switch("--no-lockstep", flags.no_lockstep, "Do not write x.lockstep.so");
  add_switch("--no-nvcc", flags.no_nvcc, "Backend host: do not ask nvcc too");
}

std::vector<std::string> take_compiler_flags(std::vector<std::string>& words) {
  if (words.empty() || words.front() != "build") return {};
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return {};
  const std::vector<std::string> taken(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return taken;
}

}  // namespace attn_diag::cli

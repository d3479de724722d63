// Where the parts of a kernel build are, and the options that every one gets (kernel_build.conf).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attn_diag::build {

struct Settings {
  std::filesystem::path executor;               // the library that kernels link to
  std::vector<std::filesystem::path> includes;  // stand-in headers, contract headers
  std::vector<std::string> preprocess, compile, instrumented, watched;
  std::string instrumenter;            // the clang++ of instrumented builds; empty: none was found
  std::filesystem::path plugin;        // that it loads
  std::filesystem::path watch_plugin;  // that it loads for watch builds
  std::filesystem::path leave_out_plugin;  // that it loads for builds of a few kernels

  // Why instrumented libraries cannot be built here; empty: they can.
  std::string no_instrumenter() const;
};

// Throws Error if the file cannot be read or lacks a group.
Settings load_settings(const std::filesystem::path& file);

// That of this program: ../lib/attn_diag/kernel_build.conf, in a build tree as in an installed one.
std::filesystem::path settings_file_of_program();

}  // namespace attn_diag::build

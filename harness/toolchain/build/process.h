// Running a compiler.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attn_diag::build {

struct ProcessResult {
  int status = 0;  // exit code; 128 + signal if one ended it
  std::string out, err;
  bool ok() const { return status == 0; }
};

// Waits for its end. `words[0]` is looked for in PATH. It runs in `folder`; empty: here. Throws Error if it cannot be
// started.
ProcessResult run_process(const std::vector<std::string>& words,
                          const std::filesystem::path& folder = {});

// Whether PATH, or the path itself, has such a program.
bool is_program(const std::string& name);

// The words as one would type them.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace attn_diag::build

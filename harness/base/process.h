// Other programs, run as children.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/child_process.h"

namespace attn_diag {

struct ProcessResult : ProcessEnd {
  bool timed_out = false;
  std::string out, err;
  bool ok() const { return exit_code == 0; }
};

struct ProcessOptions {
  std::filesystem::path folder;  // that it runs in; empty: here
  double seconds = 0;            // after which it is killed; 0: it may take as long as it likes
};

// Waits for its end. `words[0]` is a path, or a name that is looked for in PATH; it reads nothing. Throws Error if it
// cannot be started.
ProcessResult run_process(const std::vector<std::string>& words,
                          const ProcessOptions& options = {});

// Whether PATH, or the path itself, has such a program.
bool is_program(const std::string& name);

}  // namespace attn_diag

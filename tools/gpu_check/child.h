// Programs run as children, so that a crash, a hang or a sticky CUDA error ends one check only.
#pragma once

#include <string>
#include <vector>

namespace attn_diag::gpu_check {

struct ChildResult {
  int exit_code = -1;  // -1: it did not end by itself
  int signal = 0;      // that ended it
  bool timed_out = false;
  std::string out, err;

  // "" if it exited with one of the codes; else what happened, with the end of its stderr.
  std::string trouble(const std::vector<int>& accepted) const;
};

// Runs words[0] (a path, or a name looked up in PATH) and waits for its end; after `seconds` it is
// killed. Throws Error if it cannot be started.
ChildResult run_child(const std::vector<std::string>& words, double seconds);

}  // namespace attn_diag::gpu_check

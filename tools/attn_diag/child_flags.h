// Flags of commands that run a user's code, which they do in a child process.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct ChildFlags {
  std::string timeout;
  bool in_process = false;
};

void add_child_flags(CLI::App& app, ChildFlags& flags);

}  // namespace attn_diag::cli

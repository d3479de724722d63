// Findings with file and line for editors, GitHub and code scanning: --sarif and --format.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct LocatedFlags {
  std::string sarif, format;
};

void add_located_flags(CLI::App& app, LocatedFlags& flags);

}  // namespace attn_diag::cli

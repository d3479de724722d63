// Flags of gate 0 of a trace.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct SanityFlags {
  std::string runs;
  bool off = false;
};

// `cheaply`: of a command that without --sanity does the cheap part only.
void add_sanity_flags(CLI::App& app, SanityFlags& flags, bool cheaply = false);

// TraceOptions::sanity_runs. Throws Error for what is no number, or both flags.
int parse_sanity_runs(const SanityFlags& flags);

}  // namespace attn_diag::cli

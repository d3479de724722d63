// Flags of attn-diag check, besides those of a case.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct CheckFlags {
  std::string suppressions, max;
};

inline constexpr const char* kCheckSummary =
    "Races, uninitialised reads, bounds and more, with file and line";
inline constexpr const char* kCheckFooter = R"(
Runs the production kernel once on the host executor, in the instrumented build of its library, and
watches every load, store and synchronisation. Each finding names both accesses.

Examples:
  attn-diag check --kernel fa1
  attn-diag check --kernel fa1@missing-barrier
  attn-diag check --kernel ./libmine.so:mine --seqlen 100 --mask causal --json

Exit codes: 0 clean (or benign alone); 1 errors or latent findings; 2 could not check; 3 internal
error.)";

void add_check_flags(CLI::App& app, CheckFlags& flags);

}  // namespace attn_diag::cli

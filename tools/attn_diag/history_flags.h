// Flags of attn-diag history, and of commands that note their runs there.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace attn_diag::cli {

inline constexpr std::int64_t kShownRuns = 20;

struct HistoryFlags {
  std::string limit;
};

inline constexpr const char* kHistorySummary =
    "The runs noted in .attn-diag/history of this directory, newest last";
inline constexpr const char* kHistoryFooter = R"(
run, trace and dump note each case: when, kernel, library, build id, hashes of the sources and of the
bits of the output, verdict. So a case that still fails with the same bits after an edit is told from
one that the edit changed, and a binary that was not rebuilt from an edit that is elsewhere. The newest
500 are kept. --no-history or ATTN_DIAG_HISTORY=0 turns it off.

Examples:
  attn-diag history
  attn-diag history --kernel split_k --limit 100
  attn-diag history --json | jq '.runs[] | select(.verdict == "diverges")'

Exit codes: 0; 2 bad usage.)";
inline constexpr const char* kNoHistoryHelp =
    "Neither read nor write .attn-diag/history (or ATTN_DIAG_HISTORY=0)";

void add_history_flags(CLI::App& app, HistoryFlags& flags);

}  // namespace attn_diag::cli

// Flags of attn-diag repair, besides those of a case.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace attn_diag::cli {

struct RepairFlags {
  std::vector<std::string> lines;  // FILE:LINE
  std::string time_limit;
  bool apply = false;
};

inline constexpr const char* kRepairSummary =
    "The smallest edit of a kernel's source under which everything agrees";
inline constexpr const char* kRepairFooter = R"(
For a kernel that diverges and that attn-diag build has built. Tries small edits of its code: operators,
numbers, names of the same type, guards, initialisers, barriers, factors, and the like; many in one library, of
which one is chosen at run time. An edit that makes the case agree is built by itself and must agree on other
numbers, lengths, masks, types, orders of threads and with check. Your files are only read, unless --apply is given.

Examples:
  attn-diag repair --kernel ./mine.so --mask causal
  attn-diag repair --kernel ./mine.so --line mine.cu:42 --time-limit 30
  attn-diag repair --kernel ./mine.so --apply

Exit codes: 0 an edit was found, or the kernel agrees already; 1 nothing was found; 2 could not look; 3 internal
error.)";

void add_repair_flags(CLI::App& app, RepairFlags& flags);

}  // namespace attn_diag::cli

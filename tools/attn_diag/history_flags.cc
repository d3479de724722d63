#include "tools/attn_diag/history_flags.h"

#include <CLI/CLI.hpp>

namespace attn_diag::cli {

void add_history_flags(CLI::App& app, HistoryFlags& flags) {
  app.add_option("--limit", flags.limit, "How many runs are shown, the newest (20)")->type_name("");
}

}  // namespace attn_diag::cli

#include "tools/attn_diag/repair_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_repair_flags(CLI::App& app, RepairFlags& flags) {
  app.add_option("--line", flags.lines,
                 "A line of suspicion, where edits are tried first, as mine.cu:42; may be repeated")
      ->group(kRunGroup)
      ->type_name("FILE:LINE")
      ->allow_extra_args(false);
  app.add_option("--time-limit", flags.time_limit, "Seconds for all of it (120)")
      ->group(kRunGroup)
      ->type_name("");
  app.add_flag("--apply", flags.apply, "Put the smallest edit into the source file")
      ->group(kOutputGroup);
}

}  // namespace attn_diag::cli

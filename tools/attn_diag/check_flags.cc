#include "tools/attn_diag/check_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_check_flags(CLI::App& app, CheckFlags& flags) {
  app.add_option("--suppressions", flags.suppressions,
                 "Findings not to count, a line each: KIND ARRAY PLACE # REASON")
      ->group(kOutputGroup)
      ->type_name("FILE");
  app.add_option("--max", flags.max, "Findings kept of each kind (100)")
      ->group(kOutputGroup)
      ->type_name("");
}

}  // namespace attn_diag::cli

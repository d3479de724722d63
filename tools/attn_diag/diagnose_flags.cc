#include "tools/attn_diag/diagnose_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_diagnose_flags(CLI::App& app, DiagnoseFlags& flags) {
  app.add_option("--why-not", flags.why_not,
                 "How a bug of the catalogue, or several, fail to explain it")
      ->group(kOutputGroup)
      ->delimiter(',')
      ->type_name("ID");
  app.add_flag("--active", flags.active,
               "Run the kernel again: on inputs that tell a class apart, and in other tiles")
      ->group(kRunGroup);
  app.add_flag("--no-pairs", flags.no_pairs, "Look for single bugs only")->group(kRunGroup);
}

}  // namespace attn_diag::cli

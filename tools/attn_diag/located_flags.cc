#include "tools/attn_diag/located_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_located_flags(CLI::App& app, LocatedFlags& flags) {
  app.add_option("--format", flags.format,
                 "text; gcc: FILE:LINE:COLUMN: error: ..., as editors read it; or github: "
                 "annotations, which on GitHub Actions go to stderr by themselves (text)")
      ->group(kOutputGroup)
      ->type_name("");
  app.add_option("--sarif", flags.sarif, "Also write a SARIF 2.1.0 file, for code scanning")
      ->group(kOutputGroup)
      ->type_name("FILE");
}

}  // namespace attn_diag::cli

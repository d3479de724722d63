#include "tools/attn_diag/report_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_report_flags(CLI::App& app, ReportFlags& flags) {
  app.add_flag("--no-check", flags.no_check, "Do not watch memory: races, bounds, unwritten reads")
      ->group(kRunGroup);
  app.add_option("--png", flags.png, "Also the heat map of the first wrong tensor, or of o")
      ->group("The page")
      ->type_name("FILE");
}

}  // namespace attn_diag::cli

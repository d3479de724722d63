#include "tools/attn_diag/numerics_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_numerics_flags(CLI::App& app, NumericsFlags& flags) {
  app.add_flag("--invariants", flags.invariants,
               "Only what holds without a reference; of a kernel also by running it again")
      ->group(kRunGroup);
  app.add_option("--baseline", flags.baseline, "Say what drifted since this file was written")
      ->group(kOutputGroup)
      ->type_name("FILE");
  app.add_option("--write-baseline", flags.write_baseline,
                 "Leave the histograms in this file, replacing it")
      ->group(kOutputGroup)
      ->type_name("FILE");
}

}  // namespace attn_diag::cli

#include "tools/attn_diag/child_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_child_flags(CLI::App& app, ChildFlags& flags) {
  app.add_option("--timeout", flags.timeout,
                 "Seconds that one run of the code under test may take; one that does not end is "
                 "stopped, with where it was (none; kernels that loop are found without it)")
      ->group(kRunGroup)
      ->type_name("");
  app.add_flag("--in-process", flags.in_process,
               "Run the code under test in this process, not in a child of it: for debuggers")
      ->group(kRunGroup);
}

}  // namespace attn_diag::cli

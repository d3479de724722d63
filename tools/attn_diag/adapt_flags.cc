#include "tools/attn_diag/adapt_flags.h"

#include <CLI/CLI.hpp>

namespace attn_diag::cli {

void add_adapt_flags(CLI::App& app, AdaptFlags& flags) {
  app.add_option("--function", flags.function, "The function to call; else the one that fits best")
      ->type_name("NAME");
  app.add_option("--layout", flags.layout,
                 "BHSD or BSHD, of q, k, v and o; else what the source says")
      ->type_name("NAME");
  app.add_flag("--try", flags.try_out,
               "Build and run the draft, in both layouts where the source does not say which");
}

}  // namespace attn_diag::cli

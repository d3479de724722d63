#include "tools/attn_diag/adapt_flags.h"

#include <CLI/CLI.hpp>

namespace attn_diag::cli {

void add_adapt_flags(CLI::App& app, AdaptFlags& flags) {
  app.add_option("--function", flags.function, "The function to call; else the one that fits best")
      ->type_name("NAME");
}

}  // namespace attn_diag::cli

#include "tools/attn_diag/shrink_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_shrink_flags(CLI::App& app, ShrinkFlags& flags) {
  app.add_option("--time-limit", flags.time_limit, "Seconds for all of it (120)")
      ->group(kRunGroup)
      ->type_name("");
  app.add_flag("--keep-values", flags.keep_values,
               "Leave the numbers as they are, so that flags name the case")
      ->group(kRunGroup);
  const auto add_file = [&](const char* flag, std::string& to, const char* help) {
    app.add_option(flag, to, help)->group(kOutputGroup)->type_name("FILE");
  };
  add_file("--test", flags.test,
           "Put a Catch2 test of the smallest case here, not into the report");
  add_file("--sheet", flags.sheet,
           "Put it here, worked out, expected and actual, where it is small enough");
}

}  // namespace attn_diag::cli

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
  const auto source = [&](const char* flag, std::string& to, const char* what) {
    app.add_option(flag, to, what)->group("The file of another program")->type_name("NAME");
  };
  source("--q", flags.q, "The array of the queries: NAME, FILE or FILE:NAME (by its name)");
  source("--k", flags.k, "Of the keys");
  source("--v", flags.v, "Of the values");
  source("--o", flags.o, "Of the output");
  source("--lse", flags.lse, "Of the logsumexp");
  source("--bias", flags.bias, "Of what is added to the scaled scores");
  app.add_option("--softcap", flags.softcap, "Scores are softcap * tanh(score / softcap)")
      ->group("The file of another program")
      ->type_name("");
  app.add_flag("--active", flags.active,
               "Run the kernel again: on inputs that tell a class apart, and in other tiles")
      ->group(kRunGroup);
  app.add_flag("--no-pairs", flags.no_pairs, "Look for single bugs only")->group(kRunGroup);
}

}  // namespace attn_diag::cli

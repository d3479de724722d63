#include "tools/attn_diag/sanity_flags.h"

#include <CLI/CLI.hpp>

#include "attn_diag/harness/error.h"
#include "tools/attn_diag/help.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {

void add_sanity_flags(CLI::App& app, SanityFlags& flags, bool cheaply) {
  app.add_option("--sanity", flags.runs,
                 cheaply
                     ? "Of backend host: how often the production kernel is run again, in other "
                       "orders and on other unwritten bytes (2, unless the case is large)"
                     : "How often the production kernel is run again, in other orders and on "
                       "other unwritten bytes, before anything is judged (3; on a GPU 4, of two "
                       "each)")
      ->group(kRunGroup)
      ->type_name("");
  app.add_flag("--no-sanity", flags.off, "Judge the first run as it is")->group(kRunGroup);
}

int parse_sanity_runs(const SanityFlags& flags) {
  if (flags.off && !flags.runs.empty())
    throw Error("--sanity and --no-sanity contradict one another: give one of them.");
  if (flags.off) return 0;
  constexpr int kDefault = -1;
  return flags.runs.empty() ? kDefault
                            : static_cast<int>(parse_int("--sanity", flags.runs, 1, 1000));
}

}  // namespace attn_diag::cli

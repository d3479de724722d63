#include "tools/attn_diag/xray_flags.h"

#include <CLI/CLI.hpp>

#include "tools/attn_diag/help.h"

namespace attn_diag::cli {

void add_xray_flags(CLI::App& app, XrayFlags& flags) {
  app.add_flag(
         "--properties", flags.properties,
         "Also try what holds of attention whatever the numbers: linear in v, other heads change "
         "nothing, ...")
      ->group(kRunGroup);
}

}  // namespace attn_diag::cli

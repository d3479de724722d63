#include "tools/attn_diag/foreign_flags.h"

#include <CLI/CLI.hpp>

#include "harness/files/said.h"
#include "tools/attn_diag/flags.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {

void add_foreign_flags(CLI::App& app, ForeignFlags& flags) {
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
  app.add_option("--kv-lens", flags.kv_lens, "Keys of each batch entry, the first of them: 5,17,64")
      ->group("The file of another program")
      ->type_name("");
}

ForeignHints foreign_hints(const Flags& flags) {
  const ForeignFlags& f = flags.foreign;
  ForeignHints hints;
  if (!flags.layout.empty()) hints.layout = parse_layout(flags.layout);
  if (!flags.dtype.empty()) hints.dtype = parse_dtype(flags.dtype);
  if (!flags.softmax_scale.empty())
    hints.softmax_scale = static_cast<float>(parse_real("--softmax-scale", flags.softmax_scale));
  if (!flags.mask.empty()) hints.mask = flags.mask;
  if (!f.softcap.empty()) hints.softcap = parse_real("--softcap", f.softcap, 0);
  if (!f.kv_lens.empty()) hints.kv_lens = files::lengths_of(f.kv_lens, "--kv-lens was given ");
  hints.source = {f.q, f.k, f.v, f.o, f.lse, f.bias};
  return hints;
}

}  // namespace attn_diag::cli

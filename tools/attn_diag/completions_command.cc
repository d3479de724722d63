// attn-diag completions: what shells and man read, made from the table of commands and flags.
#include <fmt/format.h>

#include <set>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/kernel.h"
#include "tools/attn_diag/man_page.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/shell_completions.h"
#include "tools/attn_diag/suggest.h"

namespace attn_diag::cli {
namespace {

// What --kernel takes of what is found: libraries are not loaded for it, so that it is quick.
std::string kernels() {
  std::set<std::string> specs;
  for (const LibraryEntry& library : list_libraries())
    for (const std::string& kernel : library.kernels)
      if (!library.lockstep) specs.insert(library.spec(kernel));
  std::string out;
  for (const std::string& spec : specs) out += spec + '\n';
  return out;
}

}  // namespace

CommandResult completions_command(const Session& session) {
  const std::string form = session.flags.files.empty() ? "" : session.flags.files.front();
  CommandResult outcome;
  outcome.is_source = true;
  if (form == "kernels") {
    outcome.out = kernels();
    return outcome;
  }
  const std::vector<CommandText> commands = command_texts();
  if (form == "bash") {
    outcome.out = bash_completions(commands);
  } else if (form == "zsh") {
    outcome.out = zsh_completions(commands);
  } else if (form == "fish") {
    outcome.out = fish_completions(commands);
  } else if (form == "man") {
    outcome.out = man_page(commands);
  } else {
    const std::vector<std::string> names(kCompletionForms.begin(), kCompletionForms.end());
    throw Error(fmt::format("completions takes {}, but was given {}.{}", fmt::join(names, ", "),
                            form.empty() ? "nothing" : "'" + form + "'",
                            did_you_mean(form, names)));
  }
  return outcome;
}

}  // namespace attn_diag::cli

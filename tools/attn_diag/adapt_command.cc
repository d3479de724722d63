// attn-diag adapt: the draft of an adapter.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "harness/adapt/adapt.h"
#include "harness/report/adapt_text.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {
namespace {

namespace fs = std::filesystem;

adapt::AdaptRequest make_request(const Flags& flags) {
  if (flags.files.size() != 1)
    throw Error(
        fmt::format("adapt takes one source, as attn-diag adapt my_kernel.cu; {} were given.",
                    flags.files.size()));
  if (flags.json && !flags.output.empty())
    throw Error("--json has the adapter in it: leave out -o, or --json.");
  if (!flags.output.empty() && fs::exists(flags.output) && !flags.force)
    throw Error(fmt::format("{} exists: name another file, or add --force.", flags.output));
  adapt::AdaptRequest request;
  request.source = flags.files.front();
  request.function = flags.adapt.function;
  const fs::path folder = fs::path(flags.output).parent_path();
  request.output_directory = folder.empty() ? fs::current_path() : folder;
  return request;
}

std::string next_step(const adapt::Draft& draft, const std::string& adapter) {
  const fs::path source = draft.source;
  const std::string library = source.stem().string() + ".so";
  return fmt::format(
      "Next\n  attn-diag build {} --adapter {} -o {}\n  attn-diag run --kernel ./{}{}\n",
      source.string(), adapter.empty() ? "adapter.cu" : adapter, library, library, draft.run_flags);
}

}  // namespace

Outcome adapt_command(const Session& session) {
  const Flags& flags = session.flags;
  const adapt::AdaptRequest request = make_request(flags);
  std::optional<TextFile> file;
  if (!flags.output.empty()) file.emplace(flags.output);
  const adapt::Draft draft = adapt::draft_adapter(request);
  Outcome outcome;
  if (flags.json) {
    outcome.out = report::dump_json(
        report::adapt_json(draft, {"adapt", session.this_command(), ATTN_DIAG_VERSION}));
    return outcome;
  }
  if (!flags.quiet)
    std::fputs((report::adapt_notes(draft, session.style) + next_step(draft, flags.output)).c_str(),
               stderr);
  if (file)
    file->finish(draft.text);
  else
    outcome.out = draft.text;
  return outcome;
}

}  // namespace attn_diag::cli

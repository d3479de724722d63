// attn-diag adapt: the draft of an adapter.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <sstream>

#include "harness/base/process.h"
#include "harness/report/adapt_text.h"
#include "harness/toolchain/adapt/adapt.h"
#include "harness/toolchain/build/build.h"
#include "harness/toolchain/build/scratch.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {
namespace {

namespace fs = std::filesystem;

adapt::AdaptRequest adapt_request(const Flags& flags) {
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
  if (!flags.adapt.layout.empty() && flags.adapt.layout != "BHSD" && flags.adapt.layout != "BSHD")
    throw Error(fmt::format("--layout {}: expected BHSD or BSHD.", flags.adapt.layout));
  if (!flags.adapt.layout.empty()) request.bshd = flags.adapt.layout == "BSHD";
  const fs::path folder = fs::path(flags.output).parent_path();
  request.output_directory = folder.empty() ? fs::current_path() : folder;
  return request;
}

// What a drafted kernel is found to be: "agrees", "diverges", or why that is not known.
std::string verdict_of(adapt::AdaptRequest drafted) {
  const build::ScratchFolder folder;
  drafted.output_directory = folder / "";
  const adapt::Draft draft = adapt::draft_adapter(drafted);
  build::BuildRequest request;
  const fs::path source = fs::absolute(draft.source), adapter = folder / "adapter.cu";
  build::write_file(adapter, draft.text);
  if (draft.holds_source)
    request.sources = {adapter};
  else
    request.sources = {source}, request.adapter = adapter;
  request.output = folder / "tried.so";
  request.lockstep = request.ask_nvcc = false;
  const build::BuildRecord record =
      build::build_library(request, build::load_settings(build::settings_file_of_program()));
  if (!record.ok) return "does not build";
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe").string(),
                                    "run",
                                    "--kernel",
                                    request.output.string(),
                                    "--no-history",
                                    "--quiet"};
  std::istringstream flags(draft.run_flags);
  for (std::string word; flags >> word;) words.push_back(word);
  const ProcessResult run = run_process(words);
  return run.ok() ? "agrees" : run.exit_code == 1 ? "diverges" : "cannot be judged";
}

// The draft, or that in the other layout where nothing in the source says which and only that agrees.
adapt::Draft tried(const adapt::AdaptRequest& request, adapt::Draft draft) {
  const std::string verdict = verdict_of(request);
  const char* layouts[] = {"BHSD", "BSHD"};
  std::string said = fmt::format("tried: {} in {}", verdict, layouts[draft.bshd ? 1 : 0]);
  if (draft.layout_unsure && verdict != "does not build") {
    adapt::AdaptRequest other = request;
    other.bshd = !draft.bshd;
    adapt::Draft second = adapt::draft_adapter(other);
    const std::string its_verdict = verdict_of(other);
    said += fmt::format(", {} in {}", its_verdict, layouts[second.bshd ? 1 : 0]);
    if (verdict != "agrees" && its_verdict == "agrees") draft = std::move(second);
  }
  const bool agrees = said.find("agrees") != std::string::npos;
  draft.notes.push_back({agrees ? adapt::NoteKind::kFound : adapt::NoteKind::kCheck, said});
  return draft;
}

std::string next_step(const adapt::Draft& draft, const std::string& adapter) {
  const fs::path source = draft.source;
  const std::string library = source.stem().string() + ".so";
  const std::string written = adapter.empty() ? "adapter.cu" : adapter;
  std::vector<std::string> build = {"attn-diag", "build"};
  if (draft.holds_source)
    build.push_back(written);
  else
    build.insert(build.end(), {source.string(), "--adapter", written});
  build.insert(build.end(), {"-o", library});
  return fmt::format("Next\n  {}\n  {}{}\n", shell_line(build),
                     shell_line({"attn-diag", "run", "--kernel", "./" + library}), draft.run_flags);
}

}  // namespace

CommandResult adapt_command(const Session& session) {
  const Flags& flags = session.flags;
  const adapt::AdaptRequest request = adapt_request(flags);
  std::optional<TextFile> file;
  if (!flags.output.empty()) file.emplace(flags.output);
  adapt::Draft draft = adapt::draft_adapter(request);
  if (flags.adapt.try_out) draft = tried(request, std::move(draft));
  CommandResult outcome;
  if (flags.json) {
    outcome.out = report::dump_json(
        report::adapt_json(draft, {"adapt", session.this_command(), ATTN_DIAG_VERSION}));
    return outcome;
  }
  if (!flags.quiet)
    write_stderr(report::adapt_notes(draft, session.style) + next_step(draft, flags.output));
  if (file)
    file->finish(draft.text);
  else
    outcome.out = draft.text, outcome.is_source = true;
  return outcome;
}

}  // namespace attn_diag::cli

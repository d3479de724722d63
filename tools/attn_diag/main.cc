// attn-diag: parse, call, print, exit code.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include "harness/base/printable.h"
#include "harness/report/json.h"
#include "tools/attn_diag/child.h"
#include "tools/attn_diag/commands.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/project_config.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {
namespace {

// The text with words that nobody would read to their end cut to their beginning.
std::string with_words_shortened(std::string_view text) {
  constexpr std::size_t kLongest = 1024, kKept = 200;
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (end > kLongest)
      out += std::string(text.substr(0, kKept)) + "... (" + std::to_string(end) + " characters)";
    else
      out += text.substr(0, end);
    const std::size_t next = std::min(end + 1, text.size());
    out += text.substr(end, next - end);
    text.remove_prefix(next);
  }
  return out;
}

int fail(ExitCode code, const char* kind, const char* what) {
  write_stderr(std::string("attn-diag: ") + kind + with_words_shortened(what) + '\n');
  return static_cast<int>(code);
}

// The exit code of `work`, or of what it threw.
int guarded(const std::function<int()>& work) {
  try {
    return work();
  } catch (const Error& e) {
    return fail(ExitCode::kCouldNotCompare, "error: ", e.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kCouldNotCompare, "error: ",
                "There is not enough memory. Choose a smaller problem (--batch, --heads, --seqlen) "
                "or record less of it (--stage, --batch-index, --head, --query).");
  } catch (
      const std::filesystem::filesystem_error& e) {  // a name that is too long, a loop of links
    return fail(ExitCode::kCouldNotCompare, "error: ", e.what());
  } catch (const std::exception& e) {
    return fail(ExitCode::kInternal,
                "internal error, please report it with the command line: ", e.what());
  }
}

std::string defaults_line(const ProjectDefaults& defaults) {
  return "Defaults of " + defaults.file + ": " + shell_line(defaults.words);
}

// What is wrong with a flag may be wrong in the file that set it.
CommandResult run_command_of(const Session& session) {
  try {
    return find_command(session.flags.command)->run(session);
  } catch (const Error& e) {
    if (session.defaults.file.empty()) throw;
    throw Error(std::string(e.what()) + " (" + defaults_line(session.defaults) + ")");
  }
}

// Says which flags a file set, beside the result: in JSON, below a text, else on stderr.
void say_defaults(const Session& session, CommandResult& outcome) {
  const ProjectDefaults& defaults = session.defaults;
  if (defaults.file.empty()) return;
  const Flags& flags = session.flags;
  if (flags.json && !outcome.out.empty()) {
    report::Json json = report::Json::parse(outcome.out);
    json["defaults"] = {{"file", defaults.file}, {"flags", shell_line(defaults.words)}};
    outcome.out = report::dump_json(json);
    return;
  }
  const std::string line = defaults_line(defaults) + '\n';
  const bool for_people = !flags.quiet && !outcome.is_source &&
                          (flags.located.format.empty() || flags.located.format == "text");
  if (for_people && !outcome.out.empty())
    outcome.out += "  " + line;
  else
    write_stderr("attn-diag: " + line);
}

int run(int argc, char** argv) {
  guard_standard_streams();
  Session session;
  session.program = argc > 0 ? argv[0] : "attn-diag";
  for (int i = 1; i < argc; ++i) session.args.emplace_back(argv[i]);
  CommandLine line = parse_command_line(session.args);
  if (line.text) {
    write_stdout(*line.text);
    return static_cast<int>(ExitCode::kAgrees);
  }
  session.defaults = take_project_defaults(session.args, line);
  session.flags = std::move(line.flags);
  session.style = stdout_style();
  const auto command = [&] {
    keep_stdout_for_reports();
    CommandResult outcome = run_command_of(session);
    say_defaults(session, outcome);
    const bool as_it_is = session.flags.json || (outcome.is_source && !stdout_is_terminal());
    write_stdout(as_it_is ? outcome.out : printable(outcome.out, session.style.colour));
    if (!outcome.error.empty()) return fail(outcome.code, "error: ", outcome.error.c_str());
    return static_cast<int>(outcome.code);
  };
  if (!wants_child(session.flags)) return command();
  return run_in_child(session, [&] { return guarded(command); });
}

}  // namespace
}  // namespace attn_diag::cli

int main(int argc, char** argv) {
  const int code = attn_diag::cli::guarded([&] { return attn_diag::cli::run(argc, argv); });
  // Everything is written by now. HDF5's own clean-up at exit crashes after a write that failed.
  std::fflush(nullptr);
  std::_Exit(code);
}

// What every command gets and gives back.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "harness/report/text.h"
#include "tools/attn_diag/flags.h"

namespace attn_diag::cli {

// The flags that a file set because they were not given.
struct ProjectDefaults {
  std::string file;                // empty: there is none, or it sets nothing here
  std::vector<std::string> words;  // "--dtype", "bf16": they stand in Session::args, too
};

struct Session {
  Flags flags;
  std::string program;            // as it was called
  std::vector<std::string> args;  // behind it
  report::Style style;            // of stdout
  ProjectDefaults defaults;

  // A line for a POSIX shell that runs this program with these words, in this environment.
  std::string shell(const std::vector<std::string>& words) const;
  std::string this_command() const { return shell(args); }
};

struct CommandResult {
  std::string out;         // for stdout
  std::string error;       // for stderr, as a thrown Error's
  bool is_source = false;  // for a compiler, not for people: goes to files and pipes as it is
  ExitCode code = ExitCode::kAgrees;
};

CommandResult bench_command(const Session& session);
CommandResult adapt_command(const Session& session);
CommandResult build_command(const Session& session);
CommandResult check_command(const Session& session);
CommandResult completions_command(const Session& session);
CommandResult diagnose_command(const Session& session);
CommandResult doctor_command(const Session& session);
CommandResult explain_command(const Session& session);
CommandResult history_command(const Session& session);
CommandResult inputs_command(const Session& session);
CommandResult list_command(const Session& session);
CommandResult numerics_command(const Session& session);
CommandResult repair_command(const Session& session);
CommandResult report_command(const Session& session);
CommandResult run_command(const Session& session);
CommandResult dump_command(const Session& session);
CommandResult compare_command(const Session& session);
CommandResult trace_command(const Session& session);
CommandResult shrink_command(const Session& session);
CommandResult sweep_command(const Session& session);
CommandResult show_command(const Session& session);
CommandResult xray_command(const Session& session);

constexpr ExitCode verdict_code(Answer answer) {
  return answer == Answer::kAgrees     ? ExitCode::kAgrees
         : answer == Answer::kDiverges ? ExitCode::kDiverges
                                       : ExitCode::kCouldNotCompare;
}

}  // namespace attn_diag::cli

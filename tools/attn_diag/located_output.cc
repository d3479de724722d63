#include "tools/attn_diag/located_output.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "attn_diag/harness/error.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string working_directory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

}  // namespace

LocatedOutput::LocatedOutput(const Session& session)
    : x_session(session), x_folder(working_directory()) {
  const LocatedFlags& flags = session.flags.located;
  if (!flags.format.empty()) parse_format(flags.format);
  if (session.flags.json && !flags.format.empty())
    throw Error("--json and --format are both about what stdout shows: give one of them.");
  if (!flags.sarif.empty()) x_sarif = std::make_unique<TextFile>(flags.sarif);
}

void LocatedOutput::finish(const std::vector<report::LocatedFinding>& findings,
                           CommandResult& outcome) {
  if (x_sarif)
    x_sarif->finish(report::sarif(findings, {ATTN_DIAG_VERSION, x_session.this_command(), x_folder,
                                             static_cast<int>(outcome.code)})
                        .dump(2, ' ', false, report::Json::error_handler_t::replace) +
                    '\n');
  // The root of the checkout: annotations name files from there.
  const std::string workspace = from_environment("GITHUB_WORKSPACE");
  const std::string& root = workspace.empty() ? x_folder : workspace;
  const std::string& format = x_session.flags.located.format;
  if (format == "gcc") {
    outcome.out = report::gcc_text(findings, x_folder);
  } else if (format == "github") {
    outcome.out = report::github_text(findings, root);
  } else if (format.empty() && from_environment("GITHUB_ACTIONS") == "true") {
    write_stderr(report::github_text(findings, root));
  }
}

}  // namespace attn_diag::cli

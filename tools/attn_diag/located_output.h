// Writes findings with file and line as --sarif and --format ask for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/report/located.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

class LocatedOutput {
 public:
  // Throws Error for flags that make no sense, and where the SARIF file could not be written, before long work.
  explicit LocatedOutput(const Session& session);

  // The SARIF file, and on GitHub Actions annotations on stderr. What stdout shows is outcome.out, replaced where
  // --format asks for another form.
  void finish(const std::vector<report::LocatedFinding>& findings, CommandResult& outcome);

 private:
  const Session& x_session;
  std::string x_folder;  // the working directory: user code may change it
  std::unique_ptr<TextFile> x_sarif;
};

}  // namespace attn_diag::cli

// The run history of the current directory, as commands use it.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "harness/history/history.h"
#include "tools/attn_diag/flags.h"

namespace attn_diag::cli {

// .attn-diag in the current directory.
inline constexpr const char* kHistoryDirectory = ".attn-diag";

// What was run before, and what this command adds to it. Off by --no-history and ATTN_DIAG_HISTORY=0.
class History {
 public:
  explicit History(const Flags& flags);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Notes the run, and sets capture.same_output where it fails as it did before an edit. `verdict`:
  // "agrees", "diverges", or "" where nothing was compared: the verdict that these very bits had before
  // then counts.
  void note(Capture& capture, const std::string& verdict);
  void note(Capture& capture, Answer answer) {
    note(capture, answer == Answer::kAgrees     ? "agrees"
                  : answer == Answer::kDiverges ? "diverges"
                                                : "");
  }

 private:
  std::string x_command;
  bool x_on;
  HistoryFile x_file{kHistoryDirectory};
  std::vector<RecordedRun> x_past, x_new;
};

}  // namespace attn_diag::cli

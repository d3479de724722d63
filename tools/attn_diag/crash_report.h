// The parent's side of a crash report.
#pragma once

#include <sys/types.h>

#include "harness/report/crash.h"
#include "tools/attn_diag/crash_page.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

struct HowItEnded {
  report::CrashReport::Kind kind = report::CrashReport::Kind::kSignal;
  int code = 0;
  double seconds = 0;
};

// Reports how the child ended: on stderr, and as the session's flags ask for, as JSON on stdout and in the
// JUnit file. Removes what it left. Returns the exit code.
int report_crash(const Session& session, const CrashPage& page, const HowItEnded& ended,
                 pid_t child);

// Files that are written to a temporary name and renamed, where the child did not come to that.
void remove_temporary_files(const Session& session, pid_t child);

}  // namespace attn_diag::cli

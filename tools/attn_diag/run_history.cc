#include "tools/attn_diag/run_history.h"

#include <cstdlib>
#include <cstring>

namespace attn_diag::cli {
namespace {

bool switched_off() {
  const char* const value = std::getenv("ATTN_DIAG_HISTORY");
  return value != nullptr && std::strcmp(value, "0") == 0;
}

}  // namespace

History::History(const Flags& flags)
    : x_command(flags.command), x_on(!flags.no_history && !switched_off()) {
  if (x_on) x_past = x_file.read();
}

History::~History() {
  x_file.add(x_new);  // a directory that cannot be written is no error
}

void History::note(Capture& capture, const std::string& verdict) {
  if (!x_on) return;
  RecordedRun run = record_of(capture, x_command, verdict);
  const std::string known = verdict.empty() ? known_verdict(x_past, run) : verdict;
  if (known != "agrees")
    capture.same_output = find_same_output(x_past, run, capture.provenance.stale());
  x_new.push_back(std::move(run));
}

}  // namespace attn_diag::cli

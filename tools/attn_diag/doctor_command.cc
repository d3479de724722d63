// attn-diag doctor: what can run here, and what to do about what cannot.
#include "harness/doctor/doctor.h"

#include "harness/report/doctor_report.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

CommandResult doctor_command(const Session& session) {
  const Health health = examine();
  CommandResult outcome;
  outcome.code = health.host.works() ? ExitCode::kAgrees : ExitCode::kCouldNotCompare;
  if (session.flags.json) {
    outcome.out = report::dump_json(report::doctor_json(health, ATTN_DIAG_VERSION));
  } else if (session.flags.quiet) {
    for (const BackendHealth* b : {&health.host, &health.cuda})
      outcome.out += b->name + (b->works() ? " works\n" : " cannot run\n");
  } else {
    outcome.out = report::doctor_text(health, ATTN_DIAG_VERSION, session.style);
  }
  return outcome;
}

}  // namespace attn_diag::cli

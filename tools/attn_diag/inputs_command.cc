// attn-diag inputs: what inputs can show, before anything is run on them.
#include <utility>

#include "attn_diag/harness/identifiability.h"
#include "harness/report/identifiability_report.h"
#include "harness/run/run_plan.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

CommandResult inputs_command(const Session& session) {
  const Flags& flags = session.flags;
  std::vector<RequestedCase> cases = expand_cases(flags, true);
  report::IdentifiabilityView view;
  view.kernel = flags.kernel;
  view.reproduce = session.this_command();
  {
    Progress progress(!flags.quiet);
    int step = 0;
    for (RequestedCase& one : cases) {
      progress.step(++step, static_cast<int>(cases.size()), one.inputs);
      const Kernel kernel = load_kernel(one);
      const Geometry geometry = plan(kernel, one);
      const InputData inputs = inputs_of(one, kernel, geometry);
      const reference::PredictionInputs data(one.problem, geometry,
                                             declared_arithmetic(kernel, one.problem, geometry),
                                             {inputs.q.data(), inputs.k.data(), inputs.v.data()});
      view.all.push_back({one.inputs, one.problem, geometry, identify(data, one.run.threads)});
    }
  }
  CommandResult outcome;
  outcome.out = flags.json ? report::dump_json(report::identifiability_json(
                                 view, {"inputs", view.reproduce, ATTN_DIAG_VERSION}))
                           : report::identifiability_text(view, session.style, flags.quiet);
  return outcome;
}

}  // namespace attn_diag::cli

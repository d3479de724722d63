// attn-diag xray: what a kernel that can only be run makes of q and k.
#include <utility>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/xray.h"
#include "harness/report/xray_report.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/dump_options.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {

CommandResult xray_command(const Session& session) {
  Flags flags = session.flags;
  flags.stage = "full";  // the production kernel
  RequestedCase one = expand_cases(flags, false).front();
  const bool dumps = !flags.output.empty();
  const DumpOptions dump_options = parse_dump_options(flags);
  if (dumps) {
    require_writable(flags.output, flags.force);
  } else if (flags.force || flags.with_reference || !flags.deflate.empty()) {
    throw Error(
        "--force, --deflate and --with-reference are about the file of -o, which is not given.");
  }
  XrayOptions options;
  const Tolerance tolerance = parse_tolerance(flags);
  const Kernel kernel = load_kernel(one);
  const Geometry geometry = plan(kernel, one);

  report::XrayView view;
  {
    Progress progress(!flags.quiet);
    options.on_step = [&](int i, int n, const std::string& what) { progress.step(i, n, what); };
    const Experiment experiment{kernel, one.problem, inputs_of(one, kernel, geometry), one.run,
                                tolerance};
    view.xray = xray(experiment, options);
    view.xray.capture.provenance.command_line = session.this_command();
    view.xray.capture.notes.insert(view.xray.capture.notes.end(), one.notes.begin(),
                                   one.notes.end());
    if (flags.xray.properties) view.properties = check_properties(experiment, options);
    if (dumps) {
      progress.step(1, 1, "writing " + flags.output);
      write_dump(flags.output, view.xray.capture, dump_options);
    }
  }
  view.kernel = one.kernel;
  view.backend = one.backend;
  view.dump = flags.output;
  one.run.gate = Gate::kReduce;  // --stage is no flag of xray
  std::vector<std::string> words = reproduce("xray", one, flags);
  if (flags.xray.properties) words.emplace_back("--properties");
  view.reproduce = session.shell(words);

  CommandResult outcome;
  outcome.code = verdict_code(view.answer());
  outcome.out =
      flags.json
          ? report::dump_json(report::xray_json(view, {"xray", view.reproduce, ATTN_DIAG_VERSION}))
          : report::xray_text(view, session.style, flags.quiet);
  return outcome;
}

}  // namespace attn_diag::cli

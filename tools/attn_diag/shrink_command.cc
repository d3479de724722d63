// attn-diag shrink: the smallest case that fails in the same way.
#include <fmt/format.h>

#include <memory>

#include "attn_diag/harness/dump.h"
#include "harness/report/shrink_text.h"
#include "harness/shrink/shrink.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/dump_options.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

// The shell line that traces a smaller case, with the inputs of the command line or those of a file.
std::string trace_of(const Session& session, const RequestedCase& given,
                     const shrink::TriedCase& smaller, const std::string& inputs = "") {
  RequestedCase one = given;
  one.problem = smaller.problem;
  one.run.tile = smaller.tile;
  one.run.num_splits = smaller.num_splits;
  one.scale_given = !shrink::has_default_scale(one.problem);
  one.inputs_from_file = !inputs.empty();
  if (one.inputs_from_file) one.inputs = inputs;
  return session.shell(reproduce("trace", one, session.flags));
}

void write_new(const std::unique_ptr<TextFile>& file, const std::string& text) {
  if (file) file->finish(text);
}

}  // namespace

CommandResult shrink_command(const Session& session) {
  Flags flags = session.flags;
  if (!flags.backend.empty() && flags.backend != "auto" && flags.backend != "host")
    throw Error(fmt::format(
        "shrink runs many cases in processes of their own, on the host executor: --backend takes "
        "host, but was given '{}'.",
        flags.backend));
  if (!flags.child.timeout.empty())
    throw Error(
        "--timeout is of commands that run the code under test once: of shrink, each case has a "
        "limit of its own, and --time-limit is that of all.");
  flags.backend = "host";
  RequestedCase one = std::move(expand_cases(flags, false).front());
  const bool dumps = !flags.output.empty();
  const DumpOptions dump_options = parse_dump_options(flags);
  if (dumps) {
    require_writable(flags.output, flags.force);
  } else if (flags.with_reference || !flags.deflate.empty()) {
    throw Error("--deflate and --with-reference are about the file of -o, which is not given.");
  }
  std::unique_ptr<TextFile> test, sheet;
  const auto open = [&](std::unique_ptr<TextFile>& file, const std::string& path) {
    if (path.empty()) return;
    if (path != "-") require_writable(path, flags.force);
    file = std::make_unique<TextFile>(path);
  };
  shrink::ShrinkOptions options;
  const Tolerance tolerance = parse_tolerance(flags);
  options.lines = flags.lines;
  options.keep_values = flags.shrink.keep_values;
  if (!flags.shrink.time_limit.empty())
    options.seconds = parse_real("--time-limit", flags.shrink.time_limit, 1);
  const Kernel kernel = load_kernel(one);
  const Geometry geometry = plan(kernel, one);
  options.processes = one.run.threads;

  report::ShrinkView view;
  view.kernel = one.kernel;
  view.backend = one.backend;
  view.tolerance = tolerance;
  view.reproduce = session.this_command();
  {
    Progress progress(!flags.quiet);
    options.on_step = [&](int i, int n, const std::string& what) { progress.step(i, n, what); };
    view.result = shrink::shrink(
        {kernel, one.problem, inputs_of(one, kernel, geometry), one.run, tolerance}, options);
  }
  CommandResult outcome;
  if (view.result.fails) {
    outcome.code = ExitCode::kDiverges;
    if (view.result.made) view.trace_before = trace_of(session, one, view.result.before_values);
    if (dumps) {
      Capture& capture = view.result.capture;
      capture.provenance.command_line = session.this_command();
      write_dump(flags.output, capture, dump_options);
      view.dump = flags.output;
      view.look = view.result.shows_it ? session.shell({"compare", flags.output})
                                       : trace_of(session, one, view.result.smallest, flags.output);
    }
    open(test, flags.shrink.test);
    write_new(test, report::catch2_test(view));
    view.test_file = flags.shrink.test;
    const std::string worked = report::worked_sheet(view);
    if (!worked.empty()) {
      open(sheet, flags.shrink.sheet);
      write_new(sheet, worked);
      view.sheet_file = flags.shrink.sheet;
    } else if (!flags.shrink.sheet.empty()) {
      view.result.notes.push_back(
          fmt::format("{} was not written: the smallest case is no case that a person works out.",
                      flags.shrink.sheet));
    }
  }
  outcome.out = flags.json ? report::dump_json(report::shrink_json(
                                 view, {"shrink", session.this_command(), ATTN_DIAG_VERSION}))
                           : report::shrink_text(view, session.style, flags.quiet);
  return outcome;
}

}  // namespace attn_diag::cli

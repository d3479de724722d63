// attn-diag numerics: how large errors are, where, and what makes them; what holds without a reference.
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/numerics.h"
#include "harness/report/numerics_report.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

// What was looked at, and what the view points to.
struct Looked {
  Capture capture;
  report::NumericsView view;
  std::optional<Baseline> baseline;  // read before anything is run, so that a bad one shows at once
  std::unique_ptr<TextFile> written;
};

Baseline baseline_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    throw Error(fmt::format(
        "{} cannot be read: --baseline takes a file that --write-baseline wrote.", path));
  return read_baseline(text.str(), path);
}

void open_files(const NumericsFlags& flags, Looked& looked) {
  if (!flags.baseline.empty()) looked.baseline = baseline_in(flags.baseline);
  if (!flags.write_baseline.empty())
    looked.written = std::make_unique<TextFile>(flags.write_baseline);
  if (flags.invariants && (looked.baseline || looked.written))
    throw Error(
        "--invariants computes no errors, of which --baseline and --write-baseline are: leave one "
        "out.");
}

void analyse(const Flags& flags, int threads, Looked& looked) {
  if (flags.numerics.invariants) return;
  NumericsOptions options;
  options.threads = threads;
  looked.view.numerics = analyse_numerics(looked.capture, options);
  const Baseline now = baseline_of(looked.capture, *looked.view.numerics);
  if (looked.baseline) {
    looked.view.drift = find_drift(*looked.baseline, now);
    looked.view.baseline = flags.numerics.baseline;
    looked.view.baseline_run =
        fmt::format("{}, {}", looked.baseline->kernel, looked.baseline->created);
    if (!looked.baseline->build_id.empty())
      looked.view.baseline_run += ", build " + looked.baseline->build_id.substr(0, 8);
  }
  if (looked.written) {
    looked.written->finish(baseline_text(now));
    looked.view.written = flags.numerics.write_baseline;
  }
}

void look_at_file(const Session& session, Looked& looked) {
  const Flags& flags = session.flags;
  if (flags.files.size() > 1) throw Error("numerics takes one dump.");
  const int threads =
      flags.threads.empty() ? 0 : static_cast<int>(parse_int("--threads", flags.threads, 1, 1024));
  Progress progress(!flags.quiet);
  progress.step(1, 1, "reading " + flags.files.front());
  looked.capture = read_dump(flags.files.front());
  looked.view.subject = flags.files.front();
  looked.view.reproduce = session.this_command();
  analyse(flags, threads, looked);
  looked.view.invariants = check_invariants(looked.capture);
}

void look_at_kernel(const Session& session, Looked& looked) {
  const Flags& flags = session.flags;
  RequestedCase one = expand_cases(flags, false).front();
  const Kernel kernel = load_kernel(one);
  const Geometry geometry = plan(kernel, one);
  Progress progress(!flags.quiet);
  progress.step(1, 2, "running " + one.kernel);
  const Experiment experiment{kernel, one.problem, inputs_of(one, kernel, geometry), one.run};
  looked.capture = run_kernel(experiment);
  looked.capture.provenance.command_line = session.this_command();
  looked.capture.notes.insert(looked.capture.notes.end(), one.notes.begin(), one.notes.end());
  progress.step(2, 2, "looking at what it computed");
  analyse(flags, one.run.threads, looked);
  looked.view.invariants = check_invariants(looked.capture);
  if (flags.numerics.invariants) {
    std::vector<InvariantResult> more = check_invariants_by_runs(
        experiment, looked.view.invariants,
        [&](int i, int n, const std::string& what) { progress.step(i, n, what); });
    for (InvariantResult& r : more) looked.view.invariants.push_back(std::move(r));
  }
  looked.view.subject = fmt::format("{} on {}", one.kernel, one.backend);
  std::vector<std::string> words = reproduce("numerics", one, flags);
  if (flags.numerics.invariants) words.emplace_back("--invariants");
  if (looked.baseline) {
    words.emplace_back("--baseline");
    words.push_back(flags.numerics.baseline);
  }
  looked.view.reproduce = session.shell(words);
}

}  // namespace

CommandResult numerics_command(const Session& session) {
  const Flags& flags = session.flags;
  if (flags.files.empty() == flags.kernel.empty())
    throw Error(
        flags.files.empty()
            ? "numerics needs --kernel or a dump; attn-diag list shows which kernels there are."
            : "numerics takes a dump or --kernel, not both.");
  Looked looked;
  open_files(flags.numerics, looked);
  if (flags.files.empty())
    look_at_kernel(session, looked);
  else
    look_at_file(session, looked);
  looked.view.capture = &looked.capture;

  CommandResult outcome;
  outcome.code = verdict_code(looked.view.answer());
  outcome.out = flags.json
                    ? report::dump_json(report::numerics_json(
                          looked.view, {"numerics", looked.view.reproduce, ATTN_DIAG_VERSION}))
                    : report::numerics_text(looked.view, session.style, flags.quiet);
  return outcome;
}

}  // namespace attn_diag::cli

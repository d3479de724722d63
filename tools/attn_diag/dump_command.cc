// attn-diag dump: run once, store every stage.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "attn_diag/harness/dump.h"
#include "harness/report/comparison_text.h"
#include "harness/report/json.h"
#include "harness/report/same_output.h"
#include "harness/report/summary.h"
#include "harness/run/input_writes.h"
#include "harness/run/repetition.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/dump_options.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/run_history.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {
namespace {

struct Stored {
  std::string name, shape, dtype;
};

std::vector<Stored> stored_tensors(const Capture& capture) {
  std::vector<Stored> all;
  for (const TensorInfo& t : kTensors)
    if (capture.has(t.id))
      all.push_back({fmt::format("/stages/{}/{}", name(t.stage), t.name),
                     fmt::format("{}", fmt::join(capture[t.id].shape, "x")),
                     std::string(name(capture[t.id].dtype))});
  return all;
}

}  // namespace

CommandResult dump_command(const Session& session) {
  const Flags& flags = session.flags;
  const std::string& path = flags.output;
  if (path.empty()) throw Error("dump needs -o FILE.h5: where to write.");
  RequestedCase one = expand_cases(flags, false).front();
  const DumpOptions options = parse_dump_options(flags);
  require_writable(path, options.force);
  const Kernel kernel = load_kernel(one);
  const Geometry geometry = plan(kernel, one);

  Progress progress(!flags.quiet);
  progress.step(1, 3, "inputs");
  const InputData inputs = inputs_of(one, kernel, geometry);
  progress.step(2, 3, "running " + one.kernel);
  Capture capture = run_kernel({kernel, one.problem, inputs, one.run});
  capture.provenance.command_line = session.this_command();
  capture.notes.insert(capture.notes.end(), one.notes.begin(), one.notes.end());
  if (!capture.input_writes.empty())
    capture.notes.push_back("Not as a kernel should: " + input_writes_text(capture.input_writes) +
                            '.');
  History(flags).note(capture, "");
  progress.step(3, 3, "writing " + path);
  write_dump(path, capture, options);

  const std::string again =
      session.shell(reproduce("dump", one, flags)) + " -o " + shell_quote(path) + dump_words(flags);
  const auto size = static_cast<double>(std::filesystem::file_size(path));
  const std::vector<Stored> stored = stored_tensors(capture);
  CommandResult outcome;
  if (flags.json) {
    report::Json j;
    j["schema"] = report::kJsonSchema;
    j["version"] = ATTN_DIAG_VERSION;
    j["command"] = "dump";
    j["path"] = path;
    j["bytes"] = size;
    j["stale"] = capture.provenance.stale();
    j["same_output"] = report::to_json(capture.same_output);
    j["isolated"] = capture.isolated;
    j["nonfinite_inputs"] = inputs.has_nonfinite;
    j["runs"] = capture.repetition.runs;
    j["moved_cells"] = capture.repetition.moved_cells();
    j["datasets"] = report::Json::array();
    for (const Stored& s : stored) j["datasets"].push_back(s.name);
    j["reproduce"] = again;
    j["provenance"] = report::to_json(capture.provenance);
    outcome.out = report::dump_json(j);
    return outcome;
  }
  const report::Style& style = session.style;
  outcome.out = report::same_output_text(capture.same_output, style) +
                report::stale_text(capture.provenance, style);
  outcome.out += fmt::format("{}: {}\n", path, report::bytes(size));
  if (flags.quiet) return outcome;
  outcome.out +=
      fmt::format("  {} on {}: {}, {}\n", one.kernel, capture.provenance.backend,
                  report::problem_text(one.problem), report::geometry_text(capture.geometry));
  for (const Stored& s : stored)
    outcome.out += fmt::format("  {:<26} {:<20} {}\n", s.name, s.shape, s.dtype);
  outcome.out += report::exempt_text(capture) + report::coverage_text(capture, style);
  if (capture.repetition.moved())
    outcome.out +=
        "  " + report::wrap(repetition_text(capture.repetition), style.width - 2, 4) + '\n';
  if (!capture.input_writes.empty())
    outcome.out +=
        "  " + report::wrap(report::input_writes_headline(capture), style.width - 2, 4) + '\n';
  if (inputs.has_nonfinite) outcome.out += "  The inputs hold NaN or infinity.\n";
  outcome.out += "  Reproduce: " + again + '\n';
  return outcome;
}

}  // namespace attn_diag::cli

// attn-diag show: the values of one query around a KV tile.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "attn_diag/harness/dump.h"
#include "harness/report/cells.h"
#include "harness/report/comparison_text.h"
#include "harness/report/json.h"
#include "harness/report/lines_report.h"
#include "harness/report/query_row.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

struct ShownPlace {
  std::int32_t batch = 0, head = 0, query = 0;
  Stage stage = Stage::kReduce;
  bool found = false;  // nothing was asked for, and this is the first wrong row
};

std::optional<std::int32_t> index_of(std::string_view flag, const std::string& text,
                                     std::int32_t extent) {
  if (text.empty()) return std::nullopt;
  return static_cast<std::int32_t>(parse_int(flag, text, 0, extent - 1));
}

// Indices that were not given are those of the first wrong row, or else of the first row recorded.
ShownPlace choose(const Capture& capture, const Flags& f, const Tolerance& tolerance) {
  const auto batch = index_of("--batch-index", f.batch_index, capture.problem.batch);
  const auto head = index_of("--head", f.head, capture.problem.heads);
  const auto query = index_of("--query", f.query, capture.problem.seqlen_q);
  std::optional<Stage> stage;
  if (!f.stage.empty()) stage = parse_stage(f.stage);

  ShownPlace place;
  const auto origin = [&](std::size_t axis) {
    return static_cast<std::int32_t>(capture.region.origin[axis]);
  };
  place.batch = batch.value_or(origin(0));
  place.head = head.value_or(origin(1));
  place.query = query.value_or(origin(2));
  if (stage) {
    place.stage = *stage;
  } else {
    for (const TensorInfo& t : kTensors)
      if (capture.has(t.id)) place.stage = t.stage;  // the last one there is
  }
  if (head && query && stage && (batch || capture.problem.batch == 1)) return place;

  const Comparison comparison = compare_with_reference(capture, tolerance);
  for (const TensorComparison& t : comparison.tensors) {
    if (stage && stage_of(t.tensor) != *stage) continue;
    for (const TensorComparison::WrongRow& row : t.wrong_rows) {
      if ((batch && row.batch != *batch) || (head && row.head != *head) ||
          (query && row.query != *query))
        continue;
      return {row.batch, row.head, row.query, stage_of(t.tensor), true};
    }
  }
  return place;
}

// The cells of a row's stage.
Comparison cells_of(const report::QueryRow& row, Stage stage) {
  Comparison cells;
  for (const TensorInfo& t : kTensors) {
    if (t.stage != stage) continue;
    const report::RowTensor& data = row[t.id];
    if (data.actual.empty()) continue;
    TensorComparison tensor;
    tensor.tensor = t.id;
    for (std::size_t i = 0; i < data.actual.size(); ++i) {
      const Judgement cell = judge_cell(data.actual[i], data.expected[i], data.limit[i]);
      ++(cell.judged ? tensor.compared : tensor.unjudged);
      tensor.mismatched += !cell.passes;
    }
    cells.tensors.push_back(std::move(tensor));
  }
  if (cells.tensors.empty())
    throw Error(fmt::format("The file holds no tensor of stage {}.", name(stage)));
  return cells;
}

report::Json values_json(const std::vector<double>& values) {
  report::Json j = report::Json::array();
  for (double x : values) j.push_back(report::json_number(x));
  return j;
}

report::Json row_json(const report::QueryRow& row, Stage stage) {
  report::Json tensors = report::Json::array();
  for (const TensorInfo& t : kTensors) {
    const report::RowTensor& data = row[t.id];
    if (t.stage != stage || data.actual.empty()) continue;
    report::Json j;
    j["name"] = t.name;
    j["axes"] = report::Json::array();
    for (int i = 3; i < t.rank; ++i) j["axes"].push_back(name(t.axes[static_cast<std::size_t>(i)]));
    j["shape"] = report::Json::array();
    if (t.rank > 3) j["shape"].push_back(data.inner0);
    if (t.rank > 4) j["shape"].push_back(data.inner1);
    j["actual"] = values_json(data.actual);
    j["expected"] = values_json(data.expected);
    j["bound"] = values_json(data.limit);
    tensors.push_back(j);
  }
  return tensors;
}

Answer lines_answer(LineAnswer answer) {
  return answer == LineAnswer::kNone        ? Answer::kAgrees
         : answer == LineAnswer::kNotLooked ? Answer::kNotJudged
                                            : Answer::kDiverges;
}

// What a trace found about the line and left in its dump.
CommandResult show_lines(const Session& session) {
  const Flags& f = session.flags;
  for (const auto& [flag, value] :
       {std::pair{"--stage", &f.stage}, std::pair{"--batch-index", &f.batch_index},
        std::pair{"--head", &f.head}, std::pair{"--query", &f.query},
        std::pair{"--kv-tile", &f.kv_tile}, std::pair{"--cells", &f.cells},
        std::pair{"--atol", &f.atol}, std::pair{"--rtol", &f.rtol}})
    if (!value->empty())
      throw Error(fmt::format("{} is about values, and --lines shows none: leave it out.", flag));
  const std::string& path = f.files[0];
  const std::optional<std::string> stored = read_dump_lines(path);
  const Capture capture = read_dump_header(path);
  if (!stored)
    throw Error(fmt::format(
        "{} holds no lines: trace -o writes them where it looked for the line, which it does of "
        "a kernel that diverges, and with --lines of any.",
        path));
  LineDivergence lines;
  try {
    lines = report::lines_of_json(*stored);
  } catch (const Error& e) {
    throw Error(fmt::format("{} cannot be read as a dump. {}", path, e.what()));
  }
  const std::string again = session.shell({"show", path, "--lines"});
  const Answer answer = lines_answer(lines.answer);
  CommandResult outcome;
  outcome.code = verdict_code(answer);
  if (f.json) {
    report::Json j =
        report::json_head({"show", again, ATTN_DIAG_VERSION}, answer, capture.provenance.stale());
    j["line_divergence"] = report::to_json(lines);
    outcome.out = report::dump_json(j);
    return outcome;
  }
  const std::string line = report::lines_line(lines);
  outcome.out = report::stale_text(capture.provenance, session.style) +
                report::paint(session.style, report::colour_of(answer),
                              answer == Answer::kAgrees     ? "AGREES"
                              : answer == Answer::kDiverges ? "DIVERGES"
                                                            : "COULD NOT COMPARE") +
                (line.empty() ? "" : ": " + line) + '\n';
  if (f.quiet) return outcome;
  outcome.out +=
      fmt::format("  {} on {}: {}, {}\n", capture.provenance.kernel, capture.provenance.backend,
                  report::problem_text(capture.problem), report::geometry_text(capture.geometry));
  outcome.out += report::lines_text(lines, session.style, true);
  outcome.out += "\n  Reproduce: " + again + '\n';
  return outcome;
}

}  // namespace

CommandResult show_command(const Session& session) {
  const Flags& flags = session.flags;
  if (flags.files.size() != 1)
    throw Error(fmt::format("show takes one file, but was given {}.", flags.files.size()));
  if (flags.lines) return show_lines(session);
  report::ViewOptions view;
  if (flags.cells == "all") {
    view.max_cells = std::numeric_limits<std::int64_t>::max();
  } else if (!flags.cells.empty()) {
    view.max_cells = parse_int("--cells", flags.cells, 1, kMaxSize);
  }
  const Tolerance tolerance = parse_tolerance(flags);
  const Capture capture = read_dump(flags.files[0]);
  if (!flags.kv_tile.empty())
    view.kv_tile = parse_int("--kv-tile", flags.kv_tile, 0,
                             num_kv_tiles(capture.problem, capture.geometry) - 1);
  const ShownPlace place = choose(capture, flags, tolerance);
  const report::QueryRow row =
      report::row_of(capture, tolerance, place.batch, place.head, place.query);
  const Comparison cells = cells_of(row, place.stage);
  const Answer answer = cells.answer();

  std::vector<std::string> words = {"show", flags.files[0], "--stage",
                                    std::string(name(place.stage))};
  const auto add = [&](const char* flag, std::int64_t value) {
    words.emplace_back(flag);
    words.push_back(std::to_string(value));
  };
  if (capture.problem.batch > 1) add("--batch-index", place.batch);
  add("--head", place.head);
  add("--query", place.query);
  if (view.kv_tile) add("--kv-tile", *view.kv_tile);
  for (const auto& [flag, value] :
       {std::pair{"--cells", &flags.cells}, std::pair{"--atol", &flags.atol},
        std::pair{"--rtol", &flags.rtol}}) {
    if (value->empty()) continue;
    words.emplace_back(flag);
    words.push_back(*value);
  }
  const std::string again = session.shell(words);

  CommandResult outcome;
  outcome.code = verdict_code(answer);
  if (flags.json) {
    report::Json j =
        report::json_head({"show", again, ATTN_DIAG_VERSION}, answer, capture.provenance.stale());
    j["judged"] = cells.judged();
    j["cells"] = cells.judged() + cells.unjudged();
    j["stage"] = name(place.stage);
    j["batch"] = place.batch;
    j["head"] = place.head;
    j["query"] = place.query;
    j["query_tile"] = place.query / capture.geometry.tile.block_m;
    j["tensors"] = row_json(row, place.stage);
    outcome.out = report::dump_json(j);
    return outcome;
  }
  const report::Style& style = session.style;
  outcome.out = report::stale_text(capture.provenance, style);
  const std::string batch =
      capture.problem.batch > 1 ? fmt::format("batch {}, ", place.batch) : std::string();
  outcome.out += report::paint(
      style, report::colour_of(answer),
      fmt::format("{}: {}{}, {}head {}, query {}, query tile {}",
                  answer == Answer::kAgrees     ? "AGREES"
                  : answer == Answer::kDiverges ? "DIVERGES"
                                                : "COULD NOT COMPARE",
                  name(place.stage), capture.isolated ? " (fed the reference's inputs)" : "", batch,
                  place.head, place.query, place.query / capture.geometry.tile.block_m));
  if (cells.unjudged() > 0)
    outcome.out += fmt::format(", {} of {} elements judged, the others have no bound",
                               report::count(cells.judged()),
                               report::count(cells.judged() + cells.unjudged()));
  outcome.out += place.found ? " (the first wrong row)\n" : "\n";
  if (flags.quiet) return outcome;
  outcome.out +=
      fmt::format("  {} on {}: {}, {}\n\n", capture.provenance.kernel, capture.provenance.backend,
                  report::problem_text(capture.problem), report::geometry_text(capture.geometry));
  outcome.out += report::stage_view(row, place.stage, capture.geometry, view, style);
  outcome.out += "\n  Reproduce: " + again + '\n';
  return outcome;
}

}  // namespace attn_diag::cli

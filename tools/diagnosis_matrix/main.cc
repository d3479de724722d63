// diagnosis_matrix: plants bugs, asks diagnose() what they are, and counts how often it is right.
// tools/diagnosis-evidence starts it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "attn_diag/harness/error.h"
#include "tools/diagnosis_matrix/report.h"

namespace attn_diag::diagnosis_matrix {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string kernels, out, commit, lines_of;
  std::vector<std::string> records, sections, only, inputs, dtypes, recorded, first_answers;
  std::int64_t right_cases = 2100;
  std::size_t every = 1;
  std::string no_worse_than;
};

bool has(const std::vector<std::string>& items, const std::string& item) {
  return items.empty() || std::find(items.begin(), items.end(), item) != items.end();
}

void print(const SingleResult& r) {
  fmt::print("{:8} {:5} {}.{} [{}] {:.2f}s {}\n", name(r.outcome),
             r.right_stage ? (*r.right_stage ? "stage" : "STAGE") : "", r.kernel, r.bug->name,
             text(r.setting), r.seconds, r.words);
}

// False where it does not show as recorded, in its stage and in o or lse.
bool print(const VisibleResult& r) {
  const std::string stage = r.first_stage ? std::string(name(*r.first_stage)) : "none";
  const bool as_recorded =
      std::find(r.bug->stages.begin(), r.bug->stages.end(), stage) != r.bug->stages.end() &&
      (r.in_outputs || !r.bug->shows_in_outputs);
  fmt::print("{} {}.{}: {} first, outputs {}\n", as_recorded ? "ok     " : "DIFFERS", r.kernel,
             r.bug->name, stage, r.in_outputs ? "diverge" : "agree");
  return as_recorded;
}

// False where the line disputes a right name.
bool print(const LineResult& r) {
  constexpr const char* says[] = {"silent", "agrees", "DISPUTES"};
  fmt::print("{:8} {}.{}: {}\n", r.is_named ? says[static_cast<std::size_t>(r.says)] : "no name",
             r.kernel, r.bug->name, r.words);
  return !r.is_named || r.says != LineSays::kOtherwise;
}

bool write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}

nlohmann::ordered_json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error("cannot read " + path);
  return nlohmann::ordered_json::parse(file);
}

// The sections asked for. False where a planted bug does not show as its record says.
bool gather(const Options& o, const Records& records, Evidence& evidence) {
  PlantedKernels kernels(o.kernels);
  const auto on_step = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  const Runner runner(kernels, records, o.every, on_step);
  const InputSet probe = input_sets().back();
  bool as_recorded = true;
  if (has(o.sections, "visible")) {
    evidence.visible = runner.visible();
    for (const VisibleResult& r : evidence.visible) as_recorded = print(r) && as_recorded;
    const auto unknown = o.only.empty() ? runner.without_record() : std::vector<std::string>();
    for (const std::string& name : unknown) fmt::print("DIFFERS {}: no record is of it\n", name);
    as_recorded = as_recorded && unknown.empty();
  }
  if (has(o.sections, "bugs")) {
    constexpr const char* types[] = {"fp16", "bf16", "fp32"};
    evidence.singles = runner.singles([&](const Setting& setting) {
      return has(o.inputs, setting.inputs.name) &&
             has(o.dtypes, types[static_cast<std::size_t>(setting.dtype)]) &&
             has(o.recorded, setting.with_stages ? "stages" : "outputs");
    });
    for (const SingleResult& r : evidence.singles) print(r);
  }
  if (has(o.sections, "unsteady")) evidence.unsteady = runner.unsteady();
  for (const UnsteadyResult& r : evidence.unsteady)
    fmt::print("{}.{}: {}\n", r.kernel, r.bug->name, r.detail);
  if (has(o.sections, "pairs")) evidence.pairs = runner.pairs({probe, DType::kFp16, false});
  for (const PairResult& r : evidence.pairs)
    fmt::print("{:8} {} {}\n", r.is_masked ? "masked" : name(r.outcome), r.kernel, r.words);
  if (has(o.sections, "right")) evidence.right = right_kernels(kernels, o.right_cases, on_step);
  for (const std::string& detection : evidence.right.detections) fmt::print("{}\n", detection);
  if (o.lines_of.empty()) return as_recorded;
  std::size_t agree = 0, named = 0;
  for (const LineResult& r : runner.lines(o.lines_of)) {
    as_recorded = print(r) && as_recorded;
    named += r.is_named ? 1 : 0;
    agree += r.says == LineSays::kAgrees ? 1 : 0;
  }
  fmt::print("the line agrees with {} of {} right names\n", agree, named);
  // Silence would pass every other test.
  as_recorded = as_recorded && named > 0 && 2 * agree >= named;
  return as_recorded;
}

int run(const Options& o) {
  Records records = read_records(o.records);
  std::erase_if(records.bugs, [&](const Bug& bug) { return !has(o.only, bug.name); });
  Evidence evidence;
  evidence.commit = o.commit;
  evidence.every = o.every;
  for (const std::string& path : o.first_answers)
    evidence.first_answers.push_back(read_first_answers(read_json(path), records));
  bool good = gather(o, records, evidence);
  if (!o.out.empty() &&
      (!write(fs::path(o.out) / "diagnosis.json", to_json(evidence).dump(1) + "\n") ||
       !write(fs::path(o.out) / "diagnosis.md", to_markdown(evidence, records))))
    throw Error("cannot write to " + o.out);
  if (!o.no_worse_than.empty()) {
    for (const std::string& worse : worse_than(evidence, read_json(o.no_worse_than))) {
      fmt::print("WORSE   {}\n", worse);
      good = false;
    }
    return good ? 0 : 1;
  }
  for (const Target& t : targets(evidence)) {
    fmt::print("{} {}: {} of {}\n", t.met() ? "met   " : "MISSED", t.what, t.count, t.of);
    good = good && (t.met() || t.is_past);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace attn_diag::diagnosis_matrix

int main(int argc, char** argv) {
  using namespace attn_diag::diagnosis_matrix;
  Options o;
  CLI::App app("Plants bugs, asks what they are, and counts how often the answer is right.");
  app.add_option("--kernels", o.kernels, "folder of the planted kernels")->required();
  app.add_option("--records", o.records, "bugs.toml, and others after it")->required();
  app.add_option("--out", o.out, "folder for diagnosis.md and diagnosis.json");
  app.add_option("--only", o.only, "these bugs; all if none");
  app.add_option("--commit", o.commit, "of the sources, for the report");
  app.add_option("--section", o.sections,
                 "visible, bugs, unsteady, pairs, right, lines; all if none, but lines")
      ->check(CLI::IsMember({"visible", "bugs", "unsteady", "pairs", "right", "lines"}));
  app.add_option(
      "--lines-of", o.lines_of,
      "sequential.cu: hold right names against the line, and fail where it disputes one");
  app.add_option("--inputs", o.inputs, "randn, small, heavy, probe; all if none");
  app.add_option("--dtype", o.dtypes, "fp16, bf16, fp32; all if none");
  app.add_option("--recorded", o.recorded, "stages, outputs; both if none");
  app.add_option("--right-cases", o.right_cases, "random cases of right kernels");
  app.add_option("--every", o.every, "run every N-th case of single bugs alone")
      ->check(CLI::PositiveNumber);
  app.add_option("--no-worse-than", o.no_worse_than,
                 "a diagnosis.json: fail where a case's outcome is worse than there");
  app.add_option(
      "--first-answers", o.first_answers,
      "a diagnosis.json of the commit that bugs are marked with as frozen: what was said of them "
      "then is shown beside what is said today; repeatable");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& e) {
    fmt::print(stderr, "diagnosis_matrix: {}\n", e.what());
    return 2;
  }
}

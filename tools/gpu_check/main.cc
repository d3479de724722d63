// gpu_check: everything that can only be checked on a GPU. tools/gpu-check starts it.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/gpu.h"
#include "harness/report/text.h"
#include "tools/gpu_check/report.h"
#include "tools/gpu_check/sections.h"
#include "tools/gpu_check/worker.h"

namespace attn_diag::gpu_check {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Options {
  Setup setup;
  std::string worker, commit;
  bool dirty = false, no_bench = false;
};

void find_programs(Setup& setup) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path root = program.parent_path().parent_path();
  setup.root = root.string();
  setup.program = program.string();
  setup.attn_diag = (root / "bin" / "attn-diag").string();
  setup.cuda_tests = (root / "tests" / "cuda_tests").string();
  setup.layout_probe = (root / "bin" / "wmma_layout_probe_cuda").string();
  setup.product_probe = (root / "bin" / "wmma_product_probe_cuda").string();
  setup.kernels = (root / "lib" / "attn_diag" / "kernels").string();
  if (setup.fixtures.empty()) setup.fixtures = (root / "fixtures").string();
  if (setup.pairs.empty()) setup.pairs = (root / "lib" / "attn_diag" / "pairs").string();
  if (setup.pytorch.empty()) setup.pytorch = (root / "compare_with_pytorch.py").string();
}

// Commit and toolchain of the bundle this program lies in, if it lies in one.
void read_manifest(const Setup& setup, Report& report) {
  std::ifstream file(fs::path(setup.root) / "MANIFEST.json");
  const Json manifest = Json::parse(file, nullptr, false);
  if (manifest.is_discarded() || !manifest.is_object()) return;
  report.commit = manifest.value("commit", "");
  report.dirty = manifest.value("dirty", false);
  report.toolchain = manifest.value("toolchain", Json(nullptr));
}

struct Planned {
  const char* name;
  const char* title;
  std::function<std::vector<Section>()> run;
};

std::vector<Planned> plan(const Setup& setup) {
  const auto one = [&setup](const char* name, const char* title,
                            Section (*run)(const Setup&)) -> Planned {
    return {name, title, [&setup, name, title, run] {
              Section section = run(setup);
              section.name = name;
              section.title = title;
              return std::vector<Section>{section};
            }};
  };
  return {
      one("tests", "Tests of the CUDA backend (Catch2, tag [cuda])", tests_section),
      one("faults", "Planted faults, traced on the GPU", faults_section),
      {"agreement", "Host and GPU, taps on and off, run again",
       [&setup] { return agreement_sections(setup); }},
      one("fidelity", "Kernels right and wrong: the host says what the GPU says", fidelity_section),
      one("wmma", "Fragments and products of wmma are those of the host executor", wmma_section),
      one("bench", "Speed (attn-diag bench)", bench_section)};
}

// A section that could not even be started has failed.
std::vector<Section> run_section(const Planned& planned) {
  const Clock::time_point begin = Clock::now();
  std::vector<Section> sections;
  try {
    sections = planned.run();
  } catch (const std::exception& e) {
    Section section;
    section.name = planned.name;
    section.title = planned.title;
    section.checks.push_back({planned.name, Verdict::kFailed, e.what(), ""});
    sections.push_back(section);
  }
  for (Section& section : sections)
    section.seconds = seconds_since(begin) / static_cast<double>(sections.size());
  return sections;
}

Section not_run(const Planned& planned, const std::string& why) {
  Section section;
  section.name = planned.name;
  section.title = planned.title;
  section.skipped = why;
  return section;
}

// "[2/6, 31 s] faults: 7 of 43", in place on a terminal, else once a section.
void say(int section, int sections, Clock::time_point begin, const std::string& text, bool last) {
  const bool terminal = isatty(2) != 0;
  if (!terminal && !last) return;
  std::fprintf(stderr, "%s[%d/%d, %.0f s] %s%s", terminal ? "\r\033[K" : "", section, sections,
               seconds_since(begin), text.c_str(), last ? "\n" : "");
  std::fflush(stderr);
}

std::string outcome_text(const Section& section) {
  if (!section.skipped.empty())
    return fmt::format("{}: not run: {}", section.name, section.skipped);
  return fmt::format(
      "{}: {} passed, {} failed, {} skipped{}", section.name, section.count(Verdict::kPassed),
      section.count(Verdict::kFailed), section.count(Verdict::kSkipped),
      section.count(Verdict::kNotSeen) > 0
          ? fmt::format(", {} not seen", report::plural(section.count(Verdict::kNotSeen), "race"))
          : "");
}

// `save` is called after every section, so that an interrupted run leaves what it found.
void check_everything(Options& options, Report& report, const std::function<void()>& save) {
  const Clock::time_point begin = Clock::now();
  report.created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  report.commit = options.commit;
  report.dirty = options.dirty;
  report.quick = options.setup.quick;
  read_manifest(options.setup, report);
  const GpuState& gpu = gpu_state();
  report.cuda_runtime = gpu.runtime;
  report.cuda_driver = gpu.driver_cuda;
  report.driver = gpu.driver_release;
  report.no_gpu = gpu.why_not;
  if (gpu.usable()) report.gpu = text(gpu.gpus.front());

  const std::vector<Planned> sections = plan(options.setup);
  const int n = static_cast<int>(sections.size()) + 1;
  int at = 1;
  const auto add = [&](const Section& section) {
    say(at, n, begin, outcome_text(section), true);
    report.sections.push_back(section);
    report.seconds = seconds_since(begin);
    save();
  };
  options.setup.progress = [&](int done, int all, const std::string& what) {
    say(at, n, begin, fmt::format("{}: {} of {}", what, done, all), false);
  };
  add(doctor_section(options.setup));
  for (const Planned& planned : sections) {
    ++at;
    if (!gpu.usable()) {
      add(not_run(planned, "no usable GPU"));
    } else if (options.no_bench && planned.name == std::string("bench")) {
      add(not_run(planned, "--no-bench"));
    } else {
      for (const Section& section : run_section(planned)) add(section);
    }
  }
  report.complete = true;
  save();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw Error(fmt::format("{} cannot be written.", path));
}

int run(Options& options) {
  find_programs(options.setup);
  if (!options.worker.empty()) {
    agreement_worker(options.worker, options.setup.quick);
    return 0;
  }
  fs::create_directories(options.setup.out);
  const std::string stem = options.setup.out + "/gpu-check";
  Report report;
  const auto save = [&] {
    write(stem + ".json", to_json(report).dump(1) + "\n");
    write(stem + ".md", to_markdown(report));
  };
  save();  // a folder that cannot be written to shows before the long work
  check_everything(options, report, save);
  for (const Section& section : report.sections)
    for (const Check& check : section.checks)
      if (check.verdict == Verdict::kFailed)
        std::printf("FAILED %s: %s: %s\n", section.name.c_str(), check.name.c_str(),
                    check.why.c_str());
  if (!report.no_gpu.empty()) std::printf("Nothing ran on a GPU. %s\n", report.no_gpu.c_str());
  std::printf("%s\n%s.json, %s.md\n", summary_line(report).c_str(), stem.c_str(), stem.c_str());
  return report.exit_code();
}

int parse_and_run(int argc, char** argv) {
  Options options;
  options.setup.out = ".";
  CLI::App app(
      "Checks attn-diag on this machine's GPU; writes gpu-check.json and gpu-check.md.\n"
      "Exit codes: 0 all passed; 1 something failed; 2 could not run (no GPU).",
      "gpu_check");
  app.add_option("--out", options.setup.out, "Folder to write to (.)");
  app.add_flag("--quick", options.setup.quick, "Fewer cases, benchmark at one size");
  app.add_flag("--no-bench", options.no_bench, "No benchmark");
  app.add_option("--fixtures", options.setup.fixtures, "The folder fixtures (../fixtures)");
  app.add_option("--pairs", options.setup.pairs,
                 "Kernels right and wrong, of fixtures/zoo/run_all pairs (../lib/attn_diag/pairs)");
  app.add_option("--pytorch", options.setup.pytorch,
                 "compare_with_pytorch.py (../compare_with_pytorch.py)");
  app.add_option("--commit", options.commit, "What was built, where there is no MANIFEST.json");
  app.add_flag("--dirty", options.dirty, "It has local changes");
  app.add_option("--worker", options.worker,
                 "Only compare this kernel with the host, for gpu_check");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return run(options);
}

}  // namespace
}  // namespace attn_diag::gpu_check

int main(int argc, char** argv) {
  try {
    return attn_diag::gpu_check::parse_and_run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpu_check: %s\n", e.what());
    return 2;
  }
}

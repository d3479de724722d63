// The sections that do little more than run a program and read what it says.
#include "tools/gpu_check/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/gpu.h"
#include "harness/report/text.h"
#include "tools/gpu_check/child.h"

namespace attn_diag::gpu_check {
namespace {

namespace fs = std::filesystem;

constexpr double kTestSeconds = 120, kBenchSeconds = 300;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Names of the test cases with tag [cuda].
std::vector<std::string> test_names(const std::string& program) {
  ProcessResult listed = run_child({program, "[cuda]", "--list-test-names-only"}, kTestSeconds);
  const bool catch2_v3 = listed.err.find("list-test-names-only") != std::string::npos;
  if (catch2_v3)
    listed = run_child({program, "[cuda]", "--list-tests", "--verbosity", "quiet"}, kTestSeconds);
  std::vector<std::string> names;
  for (const std::string& line : lines_of(listed.out)) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) names.push_back(line.substr(begin));
  }
  return names;
}

// A test's name as Catch2's command line takes it.
std::string escaped(const std::string& name) {
  std::string s;
  for (const char c : name) {
    if (std::string_view("\\,[]\"*").find(c) != std::string_view::npos) s += '\\';
    s += c;
  }
  return s;
}

Check run_test(const Setup& setup, const std::string& name) {
  const std::vector<std::string> words = {setup.cuda_tests, escaped(name)};
  const ProcessResult result = run_child(words, kTestSeconds);
  Check check;
  check.name = name;
  // Catch2 3 ends with 4 if all tests were skipped.
  check.why = trouble_of(result, {0, 4});
  const std::size_t skip = result.out.find("SKIP:");
  if (!check.why.empty()) {
    check.verdict = Verdict::kFailed;
    check.reproduce = setup.shown(words);
    check.why += ' ' + result.out;
  } else if (skip != std::string::npos || result.exit_code == 4) {
    check.verdict = Verdict::kSkipped;
    check.why = skip == std::string::npos
                    ? "skipped"
                    : result.out.substr(skip, result.out.find('\n', skip) - skip);
  } else {
    check.verdict = Verdict::kPassed;
  }
  return check;
}

// Times of PyTorch for `bench --against`; "" with a note where there is no PyTorch.
std::string pytorch_times(const Setup& setup, Section& section) {
  const std::string path = setup.out + "/pytorch.json";
  std::vector<std::string> words = {"python3", setup.pytorch, "-o", path};
  if (setup.quick) words.insert(words.end(), {"--seqlen", "512"});
  try {
    const ProcessResult result = run_child(words, kBenchSeconds);
    const std::string trouble = trouble_of(result, {0});
    if (trouble.empty()) return path;
    section.notes.push_back("Not compared with PyTorch: the script " + trouble);
  } catch (const Error& e) {
    section.notes.push_back(fmt::format("Not compared with PyTorch: {}", e.what()));
  }
  return "";
}

}  // namespace

std::vector<std::string> Setup::cuda_kernels(bool faults) const {
  const std::string suffix = ".cuda.so";
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(kernels, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(suffix) && (name.find('@') != std::string::npos) == faults)
      names.push_back(name.substr(0, name.size() - suffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Setup::shown(const std::vector<std::string>& words) const {
  std::string line = shell_line(words);
  const std::string prefix = root + "/";
  for (std::size_t at = line.find(prefix); at != std::string::npos; at = line.find(prefix, at))
    line.erase(at, prefix.size());
  return line;
}

Section doctor_section(const Setup& setup) {
  Section section;
  section.name = "doctor";
  section.title = "What can run here (attn-diag doctor)";
  const ProcessResult result = run_child({setup.attn_diag, "doctor"}, kTestSeconds);
  section.text = result.out;
  while (!section.text.empty() && section.text.back() == '\n') section.text.pop_back();
  const std::string trouble = trouble_of(result, {0});
  section.checks.push_back(
      {"attn-diag doctor", trouble.empty() ? Verdict::kPassed : Verdict::kFailed, trouble, ""});
  return section;
}

Section tests_section(const Setup& setup) {
  Section section;
  const std::vector<std::string> names = test_names(setup.cuda_tests);
  section.checks.resize(names.size());
  const int n = static_cast<int>(names.size());
  parallel(
      n, default_jobs(),
      [&](int i) {
        const auto at = static_cast<std::size_t>(i);
        section.checks[at] = run_test(setup, names[at]);
      },
      [&](int done) { setup.progress(done, n, "tests"); });
  return section;
}

namespace {

// Runs a probe that compares with a fixture.
Check run_probe(const Setup& setup, const std::string& probe, const std::string& fixture) {
  const std::vector<std::string> words = {probe, setup.fixtures + "/wmma/" + fixture};
  const ProcessResult result = run_child(words, kTestSeconds);
  Check check{"as in " + fixture, Verdict::kPassed, trouble_of(result, {0}), ""};
  if (!check.why.empty()) {
    check.verdict = Verdict::kFailed;
    check.why += ' ' + result.out;
    check.reproduce = setup.shown(words);
  }
  return check;
}

}  // namespace

Section wmma_section(const Setup& setup) {
  Section section;
  section.checks.push_back(run_probe(setup, setup.layout_probe, "layout_sm80.csv"));
  Check products = run_probe(setup, setup.product_probe, "products_sm90.csv");
  // The fixture is an H200's, which the host follows. Others may round otherwise, and be right.
  const GpuState& state = gpu_state();
  if (products.verdict == Verdict::kFailed && state.usable() && state.gpus.front().major != 9) {
    products.verdict = Verdict::kSkipped;
    products.why =
        "this architecture rounds otherwise than sm_90, which the host follows: " + products.why;
  }
  section.checks.push_back(products);
  return section;
}

Section bench_section(const Setup& setup) {
  Section section;
  std::vector<std::string> words = {setup.attn_diag, "bench", "--backend", "cuda", "--json"};
  if (setup.quick) words.insert(words.end(), {"--seqlen", "512"});
  setup.progress(0, 2, "PyTorch");
  const std::string pytorch = pytorch_times(setup, section);
  if (!pytorch.empty()) words.insert(words.end(), {"--against", pytorch});
  setup.progress(1, 2, "kernels");
  const ProcessResult result = run_child(words, kBenchSeconds);
  section.figures = Json::parse(result.out, nullptr, false);
  if (section.figures.is_discarded() || !section.figures.contains("cases")) {
    section.figures = nullptr;
    section.checks.push_back(
        {"attn-diag bench", Verdict::kFailed, trouble_of(result, {}), setup.shown(words)});
    return section;
  }
  // The file lies beside the report; where that was written does not matter to its readers.
  if (!pytorch.empty()) {
    words.back() = fs::path(pytorch).filename().string();
    section.figures["pytorch"]["file"] = words.back();
  }
  section.figures["reproduce"] = setup.shown(words);
  for (const Json& row : section.figures["cases"]) {
    const Json& p = row["problem"];
    Check check;
    check.name = fmt::format("{} S={} {}", row["kernel"].get<std::string>(),
                             p["seqlen_q"].get<int>(), p["mask"].get<std::string>());
    const std::string verdict = row["verdict"].get<std::string>();
    check.verdict = verdict == "timed"         ? Verdict::kPassed
                    : verdict == "unsupported" ? Verdict::kSkipped
                                               : Verdict::kFailed;
    if (row["why"].is_string()) check.why = row["why"].get<std::string>();
    section.checks.push_back(check);
  }
  return section;
}

}  // namespace attn_diag::gpu_check

// What the workers say, kernel by kernel, sorted into three sections.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "tools/gpu_check/child.h"
#include "tools/gpu_check/sections.h"

namespace attn_diag::gpu_check {
namespace {

constexpr double kWorkerSeconds = 240;

// Cells of a tensor of one kernel, and those that are the same on GPU and host to the last bit.
struct Alike {
  std::string tensor;
  std::int64_t cells = 0, alike = 0;
};

void add(std::vector<Alike>& all, const Json& line) {
  const std::string tensor = line["tensor"].get<std::string>();
  auto at =
      std::find_if(all.begin(), all.end(), [&](const Alike& a) { return a.tensor == tensor; });
  if (at == all.end()) at = all.insert(at, Alike{tensor});
  at->cells += line["cells"].get<std::int64_t>();
  at->alike += line["alike"].get<std::int64_t>();
}

// "fa1: the same bits as on the host in all cells of S, m; in 99.2 % of P"
std::string text_of(const std::string& kernel, const std::vector<Alike>& all) {
  std::string whole, parts;
  for (const Alike& a : all) {
    if (a.alike == a.cells)
      whole += (whole.empty() ? "" : ", ") + a.tensor;
    else
      parts += fmt::format("{}{:.1f} % of {}", parts.empty() ? "" : ", ",
                           100.0 * static_cast<double>(a.alike) / static_cast<double>(a.cells),
                           a.tensor);
  }
  return fmt::format("{}: the same bits as on the host in {}{}{}{}{}", kernel,
                     whole.empty() ? "" : "all cells of ", whole,
                     whole.empty() || parts.empty() ? "" : "; ", parts,
                     whole.empty() && parts.empty() ? "nothing" : "");
}

// Appends what a worker printed to the sections, and a failure to the first if it did not end well.
void take_lines(const std::string& kernel, const ProcessResult& result,
                std::vector<Section>& sections) {
  std::vector<Alike> alike;
  std::istringstream stream(result.out);
  for (std::string text; std::getline(stream, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (line.is_discarded()) continue;  // cut off by a crash, which is reported below
    if (line["section"] == "alike") {
      add(alike, line);
      continue;
    }
    const std::string verdict = line["verdict"].get<std::string>();
    for (Section& section : sections)
      if (section.name == line["section"].get<std::string>())
        section.checks.push_back({line["name"].get<std::string>(),
                                  verdict == "passed"    ? Verdict::kPassed
                                  : verdict == "skipped" ? Verdict::kSkipped
                                                         : Verdict::kFailed,
                                  line["why"].get<std::string>(), ""});
  }
  if (!alike.empty()) sections.front().notes.push_back(text_of(kernel, alike));
  const std::string trouble = trouble_of(result, {0});
  if (!trouble.empty())
    sections.front().checks.push_back(
        {kernel, Verdict::kFailed, "the process that ran its cases " + trouble, ""});
}

}  // namespace

std::vector<Section> agreement_sections(const Setup& setup) {
  std::vector<Section> sections(3);
  sections[0].name = "stages";
  sections[0].title = "Every stage on the GPU against the reference and the host, within bounds";
  sections[1].name = "taps";
  sections[1].title = "The production kernel has the bits of the tapped one";
  sections[2].name = "repeat";
  sections[2].title = "Run again, every bit is the same";
  const std::vector<std::string> kernels = setup.cuda_kernels(false);
  std::vector<ProcessResult> results(kernels.size());
  const int n = static_cast<int>(kernels.size());
  parallel(
      n, default_jobs(),
      [&](int i) {
        const auto at = static_cast<std::size_t>(i);
        std::vector<std::string> words = {setup.program, "--worker", kernels[at]};
        if (setup.quick) words.emplace_back("--quick");
        results[at] = run_child(words, kWorkerSeconds);
      },
      [&](int done) { setup.progress(done, n, "kernels"); });
  for (std::size_t i = 0; i < kernels.size(); ++i) take_lines(kernels[i], results[i], sections);
  return sections;
}

}  // namespace attn_diag::gpu_check

#include "tools/gpu_check/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/report/text.h"

namespace attn_diag::gpu_check {
namespace {

const char* name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kSkipped:
      return "skipped";
    case Verdict::kNotSeen:
      return "not_seen";
  }
  return "?";
}

const char* verdict_text(const Report& report) {
  if (!report.complete) return "unfinished: interrupted, or still running";
  constexpr const char* texts[] = {"everything that ran passed", "something failed",
                                   "could not run: there is no usable GPU"};
  return texts[report.exit_code()];
}

// One cell of a markdown table: no line breaks, no bars.
std::string cell(const std::string& text) {
  std::string s;
  for (const char c : text) {
    if (c == '|') s += '\\';
    s += c == '\n' ? ' ' : c;
  }
  return s;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : cell(text); }

Json section_json(const Section& section) {
  Json j;
  j["name"] = section.name;
  j["title"] = section.title;
  j["skipped"] = section.skipped.empty() ? Json(nullptr) : Json(section.skipped);
  for (const Verdict v : {Verdict::kPassed, Verdict::kFailed, Verdict::kSkipped, Verdict::kNotSeen})
    j["counts"][name(v)] = section.count(v);
  j["seconds"] = section.seconds;
  j["notes"] = section.notes;
  j["checks"] = Json::array();
  for (const Check& check : section.checks) {
    Json c;
    c["name"] = check.name;
    c["verdict"] = name(check.verdict);
    if (!check.why.empty()) c["why"] = check.why;
    if (!check.reproduce.empty()) c["reproduce"] = check.reproduce;
    j["checks"].push_back(c);
  }
  if (!section.figures.is_null()) j["figures"] = section.figures;
  if (!section.text.empty()) j["text"] = section.text;
  return j;
}

// The checks of one verdict, as a list.
std::string list_of(const Section& section, Verdict verdict) {
  std::string s;
  for (const Check& check : section.checks) {
    if (check.verdict != verdict) continue;
    s += fmt::format("- `{}`: {}\n", check.name, cell(check.why));
    if (!check.reproduce.empty()) s += fmt::format("  `{}`\n", cell(check.reproduce));
  }
  return s;
}

std::string ratio_cell(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "-";
}

// The cases of `attn-diag bench --json`.
std::string figures_table(const Json& figures) {
  std::string s =
      "| S | mask | dtype | kernel | median us | min us | TFLOP/s | GB/s | of floor | of fastest | "
      "fa1 takes | of PyTorch |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Json& c : figures.at("cases")) {
    const Json& p = c.at("problem");
    s += fmt::format("| {} | {} | {} | {} | ", p.at("seqlen_q").get<int>(),
                     p.at("mask").get<std::string>(), p.at("dtype").get<std::string>(),
                     c.at("kernel").get<std::string>());
    if (!c.contains("seconds")) {
      s += fmt::format("{} | | | | | | | |\n", c.at("verdict").get<std::string>());
      continue;
    }
    const Json& t = c.at("seconds");
    s += fmt::format("{:.2f} | {:.2f} | {:.1f} | {:.0f} | {} | {} | {} | {} |\n",
                     t.at("median").get<double>() * 1e6, t.at("min").get<double>() * 1e6,
                     c.at("tflops").get<double>(), c.at("gigabytes_per_second").get<double>(),
                     ratio_cell(c.at("of_floor")), ratio_cell(c.at("of_fastest")),
                     ratio_cell(c.at("faster_than_fa1")), ratio_cell(c.at("of_pytorch")));
  }
  const Json& device = figures.at("device");
  return s + fmt::format(
                 "\nOf floor: time over the larger of bytes at {:.0f} GB/s (device to device copy, "
                 "measured in this run) and flops at the tensor cores' nominal peak ({} SMs, "
                 "{:.0f} MHz). "
                 "Ratios are of times: of PyTorch 1.30 takes 1.3 times as long as "
                 "scaled_dot_product_attention.\n",
                 device.at("copy_bytes_per_second").get<double>() / 1e9,
                 device.at("sm_count").get<int>(), device.at("clock_hz").get<double>() / 1e6);
}

std::string section_details(const Section& section) {
  std::string s;
  if (!section.skipped.empty()) s += "Not run: " + cell(section.skipped) + "\n";
  for (const std::string& note : section.notes) s += "- " + cell(note) + "\n";
  const std::pair<Verdict, const char*> lists[] = {
      {Verdict::kFailed, "Failed"},
      {Verdict::kNotSeen, "Races that did not show on this GPU"},
      {Verdict::kSkipped, "Skipped"}};
  for (const auto& [verdict, heading] : lists) {
    const std::string list = list_of(section, verdict);
    if (!list.empty()) s += fmt::format("\n{}:\n\n{}", heading, list);
  }
  if (!section.figures.is_null()) s += "\n" + figures_table(section.figures);
  if (!section.text.empty()) s += "\n```\n" + section.text + "\n```\n";
  return s.empty() ? "" : fmt::format("\n## {}\n\n{}", section.title, s);
}

}  // namespace

int Section::count(Verdict verdict) const {
  return static_cast<int>(std::count_if(
      checks.begin(), checks.end(), [&](const Check& check) { return check.verdict == verdict; }));
}

bool Section::failed() const {
  return count(Verdict::kFailed) > 0 || (skipped.empty() && checks.empty());
}

int Report::exit_code() const {
  if (!no_gpu.empty()) return 2;
  return std::any_of(sections.begin(), sections.end(),
                     [](const Section& section) { return section.failed(); })
             ? 1
             : 0;
}

Json to_json(const Report& report) {
  Json j;
  j["schema"] = kSchema;
  j["verdict"] = verdict_text(report);
  j["exit_code"] = report.complete ? Json(report.exit_code()) : Json(nullptr);
  j["created"] = report.created;
  j["commit"] = report.commit.empty() ? Json(nullptr) : Json(report.commit);
  j["dirty"] = report.dirty;
  j["gpu"] = report.gpu.empty() ? Json(nullptr) : Json(report.gpu);
  j["driver"] = report.driver;
  j["cuda_driver"] = report.cuda_driver;
  j["cuda_runtime"] = report.cuda_runtime;
  j["no_gpu"] = report.no_gpu.empty() ? Json(nullptr) : Json(report.no_gpu);
  j["toolchain"] = report.toolchain;
  j["quick"] = report.quick;
  j["seconds"] = report.seconds;
  j["sections"] = Json::array();
  for (const Section& section : report.sections) j["sections"].push_back(section_json(section));
  return j;
}

std::string to_markdown(const Report& report) {
  std::string s = fmt::format("# gpu-check: {}\n\n", verdict_text(report));
  if (!report.no_gpu.empty()) s += report.no_gpu + "\n\n";
  s += "| | |\n|---|---|\n";
  s += fmt::format("| GPU | {} |\n", or_dash(report.gpu));
  s += fmt::format("| driver | {} (CUDA {}) |\n", or_dash(report.driver),
                   or_dash(report.cuda_driver));
  s += fmt::format("| CUDA runtime | {} |\n", or_dash(report.cuda_runtime));
  s += fmt::format("| commit | {}{} |\n", or_dash(report.commit),
                   report.dirty ? " with local changes" : "");
  s += fmt::format("| date | {} |\n", report.created);
  s += fmt::format("| took | {:.0f} s{} |\n\n", report.seconds,
                   report.quick ? ", with --quick: fewer cases" : "");
  s += "| section | passed | failed | skipped | races not seen | s |\n|---|---|---|---|---|---|\n";
  for (const Section& section : report.sections) {
    if (!section.skipped.empty()) {
      s += fmt::format("| {} | not run | | | | |\n", section.title);
      continue;
    }
    s += fmt::format("| {}{} | {} | {} | {} | {} | {:.0f} |\n", section.title,
                     section.checks.empty() ? " (**nothing was checked**)" : "",
                     section.count(Verdict::kPassed), section.count(Verdict::kFailed),
                     section.count(Verdict::kSkipped), section.count(Verdict::kNotSeen),
                     section.seconds);
  }
  for (const Section& section : report.sections) s += section_details(section);
  return s;
}

std::string summary_line(const Report& report) {
  int counts[4] = {0, 0, 0, 0};
  int not_run = 0, empty = 0;
  for (const Section& section : report.sections) {
    for (const Check& check : section.checks) ++counts[static_cast<int>(check.verdict)];
    not_run += !section.skipped.empty();
    empty += section.skipped.empty() && section.checks.empty();
  }
  std::string s = fmt::format("{} passed, {} failed, {} skipped, {} not seen", counts[0], counts[1],
                              counts[2], report::plural(counts[3], "race"));
  if (not_run > 0) s += fmt::format(", {} of {} sections not run", not_run, report.sections.size());
  if (empty > 0) s += fmt::format(", {} checked nothing", report::plural(empty, "section"));
  return s + fmt::format(", in {:.0f} s", report.seconds);
}

}  // namespace attn_diag::gpu_check

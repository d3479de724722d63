#include "harness/report/same_output.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

constexpr std::size_t kFilesNamed = 3;
constexpr std::size_t kShortId = 12;

std::string short_id(const std::string& id) { return id.substr(0, kShortId); }

std::string files_text(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < paths.size() && i < kFilesNamed; ++i)
    names.push_back(std::filesystem::path(paths[i]).filename().string());
  if (paths.size() > kFilesNamed)
    names.push_back(fmt::format("{} more", paths.size() - kFilesNamed));
  return join(names, ", ");
}

const char* json_name(SameOutput::Why why) {
  switch (why) {
    case SameOutput::Why::kNotRebuilt:
      return "not_rebuilt";
    case SameOutput::Why::kRebuiltTooSoon:
      return "rebuilt_before_the_last_edit";
    case SameOutput::Why::kEditIsElsewhere:
      return "edit_does_not_touch_this_case";
    case SameOutput::Why::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace

std::string same_output_line(const SameOutput& same) {
  return fmt::format(
      "output bit-identical to the run before your edit ({}; changed: {}): either the edit does "
      "not "
      "touch this case, or this binary does not contain it",
      same.before, files_text(same.changed));
}

std::string same_output_proof(const SameOutput& same) {
  switch (same.why()) {
    case SameOutput::Why::kNotRebuilt:
      return fmt::format(
          "This binary does not contain it: it has the build id of that run ({}), so it was not "
          "rebuilt. Rebuild, and make sure that this path is what the build writes.",
          short_id(same.build_id_now));
    case SameOutput::Why::kRebuiltTooSoon:
      return fmt::format(
          "This binary does not contain all of it: it was rebuilt since (build id {}, then {}), "
          "but "
          "sources were changed after that. Rebuild.",
          short_id(same.build_id_now), short_id(same.build_id_then));
    case SameOutput::Why::kEditIsElsewhere:
      return fmt::format(
          "The edit does not touch this case: the binary was rebuilt (build id {}, then {}) from "
          "what "
          "is now on disk.",
          short_id(same.build_id_now), short_id(same.build_id_then));
    case SameOutput::Why::kUnknown:
      break;
  }
  return same.stale ? "This binary does not contain it: it was not built from what is now on disk. "
                      "Rebuild."
                    : "Which of the two cannot be told: the library has no build id (link it with "
                      "-Wl,--build-id).";
}

std::string same_output_text(const std::optional<SameOutput>& same, const Style& style) {
  if (!same) return "";
  return paint(style, Colour::kRed, wrap("UNCHANGED: " + same_output_line(*same), style.width, 2)) +
         "\n  " + wrap(same_output_proof(*same), style.width - 2, 2) + '\n';
}

Json to_json(const std::optional<SameOutput>& same) {
  if (!same) return nullptr;
  Json j;
  j["before"] = same->before;
  j["changed"] = same->changed;
  j["why"] = json_name(same->why());
  j["build_id_then"] = same->build_id_then;
  j["build_id_now"] = same->build_id_now;
  j["stale"] = same->stale;
  j["text"] = same_output_line(*same);
  j["proof"] = same_output_proof(*same);
  return j;
}

std::string history_text(const std::vector<RecordedRun>& runs, const Style& style) {
  Table table({"when", "command", "kernel", "verdict", "output", "sources", "build id", "case"});
  for (const RecordedRun& run : runs) {
    const std::string verdict = run.verdict.empty() ? "not judged" : run.verdict;
    table.add({run.time, run.command, run.kernel,
               paint(style,
                     run.verdict == "agrees"     ? Colour::kGreen
                     : run.verdict == "diverges" ? Colour::kRed
                                                 : Colour::kNone,
                     verdict),
               fmt::format("{:08x}", run.output >> 32),
               fmt::format("{:08x}", run.sources_hash() >> 32), run.build_id.substr(0, 8),
               run.case_key});
  }
  return table.text(style);
}

Json to_json(const RecordedRun& run) {
  Json j;
  j["time"] = run.time;
  j["command"] = run.command;
  j["kernel"] = run.kernel;
  j["library"] = run.library;
  j["backend"] = run.backend;
  j["build_id"] = run.build_id;
  j["sources_xxh3"] = fmt::format("{:016x}", run.sources_hash());
  j["case"] = run.case_key;
  j["output_xxh3"] = fmt::format("{:016x}", run.output);
  j["verdict"] = run.verdict.empty() ? Json(nullptr) : Json(run.verdict);
  return j;
}

}  // namespace attn_diag::report

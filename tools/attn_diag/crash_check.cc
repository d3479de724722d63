#include "tools/attn_diag/crash_check.h"

#include <filesystem>

#include "harness/base/process.h"
#include "harness/report/json.h"

namespace attn_diag::cli {
namespace {

std::vector<std::string> words_of(const CrashPage& page) {
  std::vector<std::string> words;
  for (const char* word = page.check.data(); *word != '\0'; word += words.back().size() + 1)
    words.emplace_back(word);
  return words;
}

std::optional<OutOfBounds> first_in(const report::Json& findings) {
  for (const report::Json& finding : findings) {
    if (finding.at("kind") != host::name(host::CheckKind::kOutOfBounds) ||
        finding.at("severity") != host::name(host::Severity::kError))
      continue;
    OutOfBounds out;
    out.message = finding.at("message");
    for (const report::Json& place : finding.at("access").at("places"))
      out.places.push_back({place.at("file"), place.at("line"), place.at("function")});
    if (!out.places.empty()) return out;
  }
  return std::nullopt;
}

}  // namespace

std::optional<OutOfBounds> first_out_of_bounds(const CrashPage& page) {
  constexpr double kPatience = 30;
  std::vector<std::string> words = words_of(page);
  if (words.empty()) return std::nullopt;
  try {
    words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
    words.emplace_back("--json");
    const ProcessResult check = run_process(words, {{}, kPatience});
    const report::Json json = report::Json::parse(check.out, nullptr, false);
    if (json.is_object() && json.contains("findings")) return first_in(json.at("findings"));
  } catch (const std::exception&) {  // what is known without it is reported all the same
  }
  return std::nullopt;
}

}  // namespace attn_diag::cli

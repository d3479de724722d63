#include "tools/attn_diag/flag_values.h"

#include <algorithm>

#include "attn_diag/harness/inputs.h"
#include "attn_diag/kernels/stage.h"
#include "harness/report/words.h"
#include "tools/attn_diag/shell_completions.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

template <class Names>
std::vector<std::string> strings(const Names& names) {
  return std::vector<std::string>(std::begin(names), std::end(names));
}

// Those of a kind that a shell can complete: "seed:N" up to its number.
std::vector<std::string> words_of_kind(std::string_view kind) {
  std::vector<std::string> all;
  for (const report::Word& word : report::words())
    if (word.kind == kind) all.push_back(word.word.substr(0, word.word.find_first_of("NL")));
  return all;
}

std::vector<std::string> all_words() {
  std::vector<std::string> all;
  for (const report::Word& word : report::words())
    if (std::find(all.begin(), all.end(), word.word) == all.end()) all.push_back(word.word);
  return all;
}

std::vector<std::string> values_of(std::string_view command, std::string_view flag) {
  if (flag == "--stage" || flag == "--gate")
    return command == "show" ? strings(kStageNames) : strings(kGateNames);
  if (flag == "--schedule") return words_of_kind("schedule");
  if (flag == "--mask") return words_of_kind("mask");
  if (flag == "--async-copies") return words_of_kind("landing of copies");
  if (flag == "--dtype") return strings(kDTypeNames);
  if (flag == "--why-not") return words_of_kind("bug of the catalogue");
  if (flag == "--layout") return strings(kLayoutNames);
  if (flag == "--format") return strings(kFormatNames);
  if (flag == "--backend") {
    if (command == "check" || command == "repair") return {"host"};
    if (command == "bench") return {"cuda"};
    return {"auto", "host", "cuda"};
  }
  if (flag == "--inputs") {
    std::vector<std::string> all;
    for (const InputKindInfo& kind : input_kinds()) all.emplace_back(kind.name);
    return all;
  }
  if (command == "explain" && !flag.starts_with('-')) return all_words();
  if (command == "completions" && !flag.starts_with('-')) return strings(kCompletionForms);
  return {};
}

}  // namespace

FlagValues flag_values(std::string_view command, std::string_view flag, std::string_view type) {
  using Kind = FlagValues::Kind;
  if (flag == "--kernel") return {Kind::kKernel, {}};
  std::vector<std::string> words = values_of(command, flag);
  if (!words.empty()) return {Kind::kWords, std::move(words)};
  const bool file = type == "FILE" || type == "DIR" || !flag.starts_with('-');
  return {file ? Kind::kFile : Kind::kNone, {}};
}

}  // namespace attn_diag::cli

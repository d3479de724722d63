#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "attn_diag/harness/error.h"
#include "tools/diagnosis_matrix/report.h"

namespace attn_diag::diagnosis_matrix {
namespace {

using Json = nlohmann::ordered_json;

std::optional<Outcome> outcome_named(const std::string& word) {
  for (std::size_t i = 0; i < kNumOutcomes; ++i)
    if (word == name(static_cast<Outcome>(i))) return static_cast<Outcome>(i);
  return std::nullopt;
}

// The input set of "probe fp16 outputs": the rest does not count here.
std::optional<InputSet> inputs_of(const std::string& setting) {
  for (const InputSet& inputs : input_sets())
    if (setting.compare(0, inputs.name.size() + 1, inputs.name + ' ') == 0) return inputs;
  return std::nullopt;
}

}  // namespace

FirstAnswers read_first_answers(const Json& then, const Records& records) {
  const auto bugs = then.find("bugs"), commit = then.find("commit");
  if (bugs == then.end() || commit == then.end() || !commit->is_string())
    throw Error("the first answers need \"bugs\" and \"commit\", as in a diagnosis.json");
  FirstAnswers first;
  first.commit = commit->get<std::string>();
  for (const auto& [kernel, answers] : bugs->items()) {
    const std::size_t dot = kernel.find('.');
    const Bug* const bug =
        dot == std::string::npos ? nullptr : records.find(kernel.substr(dot + 1));
    if (bug == nullptr || bug->frozen_at != first.commit) continue;
    for (const auto& [setting, word] : answers.items()) {
      const auto inputs = inputs_of(setting);
      const auto outcome = outcome_named(word.get<std::string>());
      if (!inputs || !outcome)
        throw Error(fmt::format("the first answer to {} [{}], \"{}\", is none that is known",
                                kernel, setting, word.get<std::string>()));
      SingleResult result;
      result.bug = bug;
      result.kernel = kernel.substr(0, dot);
      result.setting.inputs = *inputs;
      result.outcome = *outcome;
      first.answers.push_back(std::move(result));
    }
  }
  return first;
}

std::vector<std::string> freezes(const Evidence& evidence) {
  std::vector<std::string> commits;
  const auto add = [&](const std::string& commit) {
    if (!commit.empty() && std::find(commits.begin(), commits.end(), commit) == commits.end())
      commits.push_back(commit);
  };
  for (const FirstAnswers& first : evidence.first_answers) add(first.commit);
  for (const SingleResult& result : evidence.singles) add(result.bug->frozen_at);
  return commits;
}

}  // namespace attn_diag::diagnosis_matrix

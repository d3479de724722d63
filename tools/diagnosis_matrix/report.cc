#include "tools/diagnosis_matrix/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "attn_diag/harness/error.h"

namespace attn_diag::diagnosis_matrix {
namespace {

using Json = nlohmann::ordered_json;

// One cell of a markdown table.
std::string cell(const std::string& text) {
  std::string s;
  for (const char c : text) {
    if (c == '|') s += '\\';
    s += c;
  }
  return s;
}

using Counts = std::map<Outcome, int>;

std::string counts_text(const Counts& counts) {
  std::string s;
  for (const auto& [outcome, count] : counts)
    s += fmt::format("{}{} {}", s.empty() ? "" : ", ", count, name(outcome));
  return s.empty() ? "-" : s;
}

std::string targets_table(const Evidence& evidence) {
  std::string s = "| target | reached | | wanted | |\n|---|---|---|---|---|\n";
  for (const Target& t : targets(evidence)) {
    const std::string reached =
        t.is_count ? fmt::format("{}", t.count) : fmt::format("{:.1f} %", 100 * t.reached);
    const std::string wanted =
        t.is_count ? fmt::format("{:.0f}", t.wanted) : fmt::format("{:.0f} %", 100 * t.wanted);
    s += fmt::format("| {} | {} | {} of {} | {} | {} |\n", t.what, reached, t.count, t.of, wanted,
                     t.met() ? "met" : "**missed**");
  }
  return s;
}

// For the bugs written after the matcher was frozen at a commit; "": while it was written.
std::string by_input_table(const Evidence& evidence, const std::string& frozen_at) {
  std::string s =
      "| inputs | recorded | cases | name | class | partial | unknown | not known | hidden | wrong "
      "| stage right |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const InputSet& inputs : input_sets()) {
    for (const bool with_stages : {true, false}) {
      Counts counts;
      int cases = 0, staged = 0, right_stage = 0;
      for (const SingleResult& r : evidence.singles) {
        if (r.bug->frozen_at != frozen_at || r.setting.inputs.name != inputs.name ||
            r.setting.with_stages != with_stages)
          continue;
        ++cases;
        ++counts[r.outcome];
        staged += r.right_stage.has_value();
        right_stage += r.right_stage.value_or(false);
      }
      if (cases == 0) continue;
      s +=
          fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", inputs.name,
                      with_stages ? "stages" : "outputs", cases, counts[Outcome::kName],
                      counts[Outcome::kClass], counts[Outcome::kPartial], counts[Outcome::kUnknown],
                      counts[Outcome::kNotKnown], counts[Outcome::kHidden], counts[Outcome::kWrong],
                      staged == 0 ? "-" : fmt::format("{} of {}", right_stage, staged));
    }
  }
  return s;
}

// A line a bug, a column an input set: outcomes over kernels, dtypes and what was recorded; and the first
// answers where there are some.
std::string matrix(const Evidence& evidence, const Records& records, const std::string& frozen_at) {
  std::string s = "| bug | formula | kernels |";
  std::string rule = "|---|---|---|";
  for (const InputSet& inputs : input_sets()) {
    s += " " + inputs.name + " |";
    rule += "---|";
  }
  const FirstAnswers* first = nullptr;
  for (const FirstAnswers& answers : evidence.first_answers)
    if (answers.commit == frozen_at) first = &answers;
  if (first != nullptr) {
    s += " when first asked |";
    rule += "---|";
  }
  s += "\n" + rule + "\n";
  for (const Bug& bug : records.bugs) {
    if (!bug.is_formula() || bug.frozen_at != frozen_at) continue;
    std::map<std::string, Counts> counts;
    std::set<std::string> kernels;
    for (const SingleResult& r : evidence.singles) {
      if (r.bug->name != bug.name) continue;
      ++counts[r.setting.inputs.name][r.outcome];
      kernels.insert(r.kernel);
    }
    if (kernels.empty()) continue;
    s += fmt::format("| `{}`: {} | {} | {} |", bug.name, cell(bug.what), bug.formula,
                     fmt::join(kernels, ", "));
    for (const InputSet& inputs : input_sets()) s += " " + counts_text(counts[inputs.name]) + " |";
    if (first != nullptr) {
      Counts then;
      for (const SingleResult& r : first->answers)
        if (r.bug->name == bug.name) ++then[r.outcome];
      s += " " + counts_text(then) + " |";
    }
    s += "\n";
  }
  return s;
}

std::string misses(const Evidence& evidence) {
  std::string s = "| kernel | case | outcome | said |\n|---|---|---|---|\n";
  for (const SingleResult& r : evidence.singles) {
    if (r.outcome == Outcome::kName || r.outcome == Outcome::kClass ||
        r.outcome == Outcome::kHidden)
      continue;
    if (r.setting.dtype != DType::kFp16 && r.outcome != Outcome::kWrong) continue;
    s += fmt::format("| `{}.{}` | {} | {} | {} |\n", r.kernel, r.bug->name, text(r.setting),
                     name(r.outcome), cell(r.words));
  }
  return s;
}

std::string pairs_table(const Evidence& evidence) {
  std::string s = "| kernel | inputs | outcome | said |\n|---|---|---|---|\n";
  for (const PairResult& r : evidence.pairs)
    s += fmt::format("| `{}` | {} | {} | {} |\n", r.kernel, text(r.setting),
                     r.is_masked ? "one hides the other" : name(r.outcome), cell(r.words));
  return s;
}

const char* finding_text(SanityFinding finding) {
  constexpr const char* texts[] = {"not checked",
                                   "**steady**",
                                   "reads memory it has not written",
                                   "depends on the order of threads",
                                   "has blocks that race",
                                   "moves"};
  return texts[static_cast<std::size_t>(finding)];
}

std::string unsteady_table(const Evidence& evidence) {
  std::string s = "| kernel | bug | gate 0 |\n|---|---|---|\n";
  for (const UnsteadyResult& r : evidence.unsteady)
    s += fmt::format("| `{}.{}` | {} | {} |\n", r.kernel, r.bug->name, cell(r.bug->what),
                     finding_text(r.finding));
  return s;
}

}  // namespace

Json to_json(const Evidence& evidence) {
  Json j;
  j["schema"] = "attn-diag-diagnosis-evidence/1";
  j["commit"] = evidence.commit.empty() ? Json(nullptr) : Json(evidence.commit);
  j["every"] = evidence.every;
  for (const Target& t : targets(evidence))
    j["targets"].push_back({{"what", t.what},
                            {"reached", t.reached},
                            {"wanted", t.wanted},
                            {"count", t.count},
                            {"of", t.of},
                            {"met", t.met()}});
  for (const SingleResult& r : evidence.singles) {
    const std::string kernel = r.kernel + "." + r.bug->name;
    j["bugs"][kernel][text(r.setting)] = name(r.outcome);
  }
  for (const PairResult& r : evidence.pairs)
    j["pairs"].push_back({{"kernel", r.kernel},
                          {"case", text(r.setting)},
                          {"masked", r.is_masked},
                          {"outcome", r.is_masked ? Json(nullptr) : Json(name(r.outcome))},
                          {"said", r.words}});
  for (const UnsteadyResult& r : evidence.unsteady)
    j["unsteady"].push_back({{"kernel", r.kernel + "." + r.bug->name}, {"said", r.detail}});
  j["right_kernels"] = {{"cases", evidence.right.cases}, {"detections", evidence.right.detections}};
  return j;
}

std::vector<std::string> worse_than(const Evidence& evidence, const Json& before) {
  const auto rank = [](const std::string& outcome) {
    constexpr const char* best_first[] = {"name",      "class",   "moves",  "partial",
                                          "not known", "unknown", "hidden", "wrong"};
    return std::find(std::begin(best_first), std::end(best_first), outcome) -
           std::begin(best_first);
  };
  std::vector<std::string> worse;
  int compared = 0;
  for (const SingleResult& r : evidence.singles) {
    const std::string kernel = r.kernel + "." + r.bug->name, setting = text(r.setting);
    const auto at = before.find("bugs");
    if (at == before.end() || !at->contains(kernel) || !(*at)[kernel].contains(setting)) continue;
    ++compared;
    const std::string then = (*at)[kernel][setting];
    if (rank(name(r.outcome)) > rank(then))
      worse.push_back(fmt::format("{} [{}] was {}, is {}: {}", kernel, setting, then,
                                  name(r.outcome), r.words));
  }
  if (compared == 0) throw Error("none of these cases is in the evidence to compare with");
  return worse;
}

std::string to_markdown(const Evidence& evidence, const Records& records) {
  std::string s =
      "# Evidence that a diagnosis is right\n\n"
      "Written by `tools/diagnosis-evidence`; do not edit. What is planted: "
      "`fixtures/diagnosis`.\n\n";
  if (evidence.every > 1)
    s += fmt::format("Of the cases of single bugs, one in {} was run.\n\n", evidence.every);
  s += "## Targets\n\n" + targets_table(evidence);
  if (!evidence.first_answers.empty())
    s += "\nBugs written after a commit were planted when the matcher was frozen there, by hands "
         "that "
         "had not seen it. What it answered then, \"when first asked\", is what to expect of a "
         "variant "
         "that is new to it (`docs/results/first-answers-*.json`). Since then it has learnt them: "
         "\"today\".\n";
  s += "\n## Bugs written while the matcher was\n\n" + by_input_table(evidence, "") + "\n" +
       matrix(evidence, records, "");
  for (const std::string& commit : freezes(evidence))
    s += fmt::format(
             "\n## Bugs written after {}\n\nBy hands that had not seen what the matcher knew. Not "
             "known: of no claim, where the catalogue has no statement of the bug.\n\n",
             commit) +
         by_input_table(evidence, commit) + "\n" + matrix(evidence, records, commit);
  s += "\n## What was not named\n\nIn fp16; wrong names in every type.\n\n" + misses(evidence);
  s += "\n## Two bugs at once\n\n" + pairs_table(evidence);
  s += "\n## No formula\n\n" + unsteady_table(evidence);
  s += fmt::format("\n## Right kernels\n\n{} random cases, {} detections.\n", evidence.right.cases,
                   evidence.right.detections.size());
  for (const std::string& detection : evidence.right.detections) s += "- " + detection + "\n";
  return s;
}

}  // namespace attn_diag::diagnosis_matrix

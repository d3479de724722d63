// The evidence as docs/results/diagnosis.md and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/diagnosis_matrix/sections.h"

namespace attn_diag::diagnosis_matrix {

// What the matcher frozen at `commit` said about the bugs written after it. Without words.
struct FirstAnswers {
  std::string commit;
  std::vector<SingleResult> answers;
};

struct Evidence {
  std::string commit;
  std::size_t every = 1;  // of the cases of single bugs, the every-th was run
  std::vector<VisibleResult> visible;
  std::vector<SingleResult> singles;
  std::vector<FirstAnswers> first_answers;  // the latest last
  std::vector<UnsteadyResult> unsteady;
  std::vector<PairResult> pairs;
  RightResult right;
};

// One target, and what was reached.
struct Target {
  std::string what;
  double reached = 0, wanted = 0;  // shares; of wrong names and detections: counts
  std::int64_t count = 0, of = 0;
  bool is_count = false;  // at most `wanted`, otherwise at least
  bool is_past = false;   // of the first answers

  bool met() const { return is_count ? reached <= wanted : of > 0 && reached >= wanted; }
};
// The targets of what was run and of the first answers.
std::vector<Target> targets(const Evidence& evidence);

// Cases of `evidence` with a worse outcome than in `before`, which to_json() wrote, in words. Throws Error
// where none is in both.
std::vector<std::string> worse_than(const Evidence& evidence, const nlohmann::ordered_json& before);

// From what to_json() wrote when the answers were given. Throws Error where it holds none.
FirstAnswers read_first_answers(const nlohmann::ordered_json& then, const Records& records);

// The commits at which the matcher was frozen for bugs of the evidence, in the order of the first answers.
std::vector<std::string> freezes(const Evidence& evidence);

nlohmann::ordered_json to_json(const Evidence& evidence);
std::string to_markdown(const Evidence& evidence, const Records& records);

}  // namespace attn_diag::diagnosis_matrix

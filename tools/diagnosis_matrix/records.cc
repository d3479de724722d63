#include "tools/diagnosis_matrix/records.h"

#include <algorithm>
#include <cmath>

#include "attn_diag/harness/error.h"
#include "harness/inputs/case_file.h"

namespace attn_diag::diagnosis_matrix {
namespace {

ProblemCase case_of(const CaseFields& fields) {
  ProblemCase c;
  c.problem = problem_of(fields);
  c.tile = tile_of(fields);
  c.softcap = fields.find<double>("softcap").value_or(0);
  const std::string bias = fields.find<std::string>("bias").value_or("none");
  c.has_alibi = bias == "alibi";
  if (!c.has_alibi && bias != "none") fields.fail("bias", "alibi or none");
  return c;
}

Bug bug_of(const CaseFields& table) {
  Bug bug;
  bug.name = table.text("name");
  bug.what = table.text("what");
  bug.formula = table.text("formula");
  bug.kernels = table.texts("kernels");
  bug.stages = table.texts("stage");
  bug.problem = table.text("problem");
  bug.hypotheses = table.texts("hypotheses");
  bug.shows_in_outputs = table.find<std::string>("shows_in") != "stages";
  bug.frozen_at = table.text("frozen");
  if (bug.frozen_at == "before")
    bug.frozen_at.clear();
  else if (bug.frozen_at.size() < 7 ||
           bug.frozen_at.find_first_not_of("0123456789abcdef") != std::string::npos)
    table.fail("frozen", "before, or the commit of the matcher that was frozen");
  return bug;
}

}  // namespace

reference::Extras ProblemCase::extras() const {
  reference::Extras extras;
  extras.softcap = softcap;
  if (!has_alibi) return extras;
  extras.bias_heads = problem.heads;
  for (int head = 0; head < problem.heads; ++head)
    for (int query = 0; query < problem.seqlen_q; ++query)
      for (int key = 0; key < problem.seqlen_k; ++key)
        extras.bias.push_back(std::ldexp(static_cast<float>(key - query), -1 - head));
  return extras;
}

const Bug* Records::find(const std::string& name) const {
  const auto at =
      std::find_if(bugs.begin(), bugs.end(), [&](const Bug& bug) { return bug.name == name; });
  return at == bugs.end() ? nullptr : &*at;
}

namespace {

void read_records(const std::string& path, Records& records) {
  const toml::table file = read_toml(path);
  if (const toml::table* problems = file["problem"].as_table()) {
    for (const auto& [name, node] : *problems) {
      const std::string key(name.str());
      records.problems[key] = case_of(CaseFields({node.as_table()}, path + ", problem " + key));
    }
  }
  const toml::array* const bugs = file["bug"].as_array();
  if (bugs == nullptr) throw Error(path + ": there is no [[bug]]");
  for (const toml::node& node : *bugs) {
    const toml::table& fields = *node.as_table();
    const std::string where =
        path + ", bug " + fields["name"].value_or(std::string("without name"));
    const CaseFields table({&fields}, where);
    Bug bug = bug_of(table);
    if (records.find(bug.name) != nullptr) table.fail("name", "a name of its own");
    if (!records.problems.contains(bug.problem)) table.fail("problem", "one of the [problem]s");
    for (const std::string& id : bug.hypotheses)
      if (reference::find_hypothesis(id) == nullptr)
        throw Error(where + ": the catalogue has no hypothesis '" + id + "'");
    records.bugs.push_back(std::move(bug));
  }
}

}  // namespace

Records read_records(const std::vector<std::string>& paths) {
  Records records;
  for (const std::string& path : paths) read_records(path, records);
  return records;
}

}  // namespace attn_diag::diagnosis_matrix

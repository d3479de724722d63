#include "tools/diagnosis_matrix/records.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "attn_diag/harness/error.h"

namespace attn_diag::diagnosis_matrix {
namespace {

class Table {
 public:
  Table(const toml::table& table, std::string where) : x_table(table), x_where(std::move(where)) {}

  std::string text(const char* key) const {
    const auto value = x_table[key].value<std::string>();
    if (!value) fail(key, "a string");
    return *value;
  }
  bool has(const char* key) const { return x_table.contains(key); }
  std::string text_or(const char* key, const char* otherwise) const {
    return has(key) ? text(key) : otherwise;
  }
  int number(const char* key) const {
    const auto value = x_table[key].value<std::int64_t>();
    if (!value) fail(key, "a number");
    return static_cast<int>(*value);
  }
  std::vector<std::string> texts(const char* key) const {
    const toml::array* const list = x_table[key].as_array();
    if (list == nullptr) fail(key, "a list");
    std::vector<std::string> all;
    for (const toml::node& item : *list) {
      const auto value = item.value<std::string>();
      if (!value) fail(key, "a list of strings");
      all.push_back(*value);
    }
    return all;
  }
  [[noreturn]] void fail(const char* key, const char* expected) const {
    throw Error(x_where + ": " + key + " should be " + expected);
  }

 private:
  const toml::table& x_table;
  std::string x_where;
};

Mask mask_of(const Table& table) {
  const std::string text = table.text("mask");
  Mask mask;
  if (text == "none") return mask;
  mask.kind = MaskKind::kCausal;
  if (text == "causal:top_left") return mask;
  mask.alignment = CausalAlignment::kBottomRight;
  if (text == "causal:bottom_right") return mask;
  mask.kind = MaskKind::kWindow;
  if (std::sscanf(text.c_str(), "window:%d,%d", &mask.window_left, &mask.window_right) != 2)
    table.fail("mask", "none, causal:top_left, causal:bottom_right or window:LEFT,RIGHT");
  return mask;
}

ProblemCase problem_of(const Table& table) {
  ProblemCase c;
  Problem& p = c.problem;
  p.batch = table.number("batch");
  p.heads = table.number("heads");
  p.kv_heads = table.number("kv_heads");
  p.seqlen_q = table.number("seqlen_q");
  p.seqlen_k = table.number("seqlen_k");
  p.head_dim = p.head_dim_v = table.number("head_dim");
  p.mask = mask_of(table);
  p.softmax_scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
  const std::string tile = table.text_or("tile", "0x0");
  if (std::sscanf(tile.c_str(), "%dx%d", &c.tile.block_m, &c.tile.block_n) != 2)
    table.fail("tile", "like 64x16");
  if (table.has("softcap")) c.softcap = table.number("softcap");
  const std::string bias = table.text_or("bias", "none");
  c.has_alibi = bias == "alibi";
  if (!c.has_alibi && bias != "none") table.fail("bias", "alibi or none");
  return c;
}

Bug bug_of(const Table& table) {
  Bug bug;
  bug.name = table.text("name");
  bug.what = table.text("what");
  bug.formula = table.text("formula");
  bug.kernels = table.texts("kernels");
  bug.stages = table.texts("stage");
  bug.problem = table.text("problem");
  bug.hypotheses = table.texts("hypotheses");
  bug.shows_in_outputs = table.text_or("shows_in", "") != "stages";
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
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& e) {
    throw Error(path + ": " + std::string(e.description()));
  }
  if (const toml::table* problems = file["problem"].as_table()) {
    for (const auto& [name, node] : *problems) {
      const std::string key(name.str());
      records.problems[key] = problem_of(Table(*node.as_table(), path + ", problem " + key));
    }
  }
  const toml::array* const bugs = file["bug"].as_array();
  if (bugs == nullptr) throw Error(path + ": there is no [[bug]]");
  for (const toml::node& node : *bugs) {
    const toml::table& fields = *node.as_table();
    const std::string where =
        path + ", bug " + fields["name"].value_or(std::string("without name"));
    const Table table(fields, where);
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

#include "harness/toolchain/adapt/slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/toolchain/adapt/arguments.h"
#include "harness/toolchain/adapt/role_names.h"
#include "harness/toolchain/source/source_error.h"

namespace attn_diag::adapt {

using source::Syntax;

namespace {

bool is_real(const std::string& type) {
  return type.find("float") != std::string::npos || type.find("double") != std::string::npos;
}

// The role of a variable by its name: a size, or for real types a number.
Role role_of(const std::string& name, const std::string& type) {
  if (is_real(type)) return number_role(name);
  const Role role = classify_size(name).role;
  return role == Role::kUnknown && type == "bool" ? size_role(name) : role;
}

}  // namespace

std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  try {
    const source::TokenList list = source::tokenize(text, "expression");
    for (std::size_t i = 0; i < list.tokens.size(); ++i) {
      const bool member = i > 0 && list.tokens[i - 1].is_any({".", "->", "::"});
      if (list.tokens[i].is_identifier() && !member) names.emplace_back(list.tokens[i].text);
    }
  } catch (const source::SourceError&) {
  }
  return names;
}

Slice::Slice(const Model& model, const FunctionModel& f, const Facts& facts,
             std::set<std::string> constant)
    : x_model(model), x_s(model.syntax()), x_f(f), x_facts(facts), x_constant(std::move(constant)) {
  // A variable that makes a constant must be one too.
  for (bool grew = true; grew;) {
    grew = false;
    for (const std::string& name : std::set<std::string>(x_constant))
      if (const auto at = declared_at(name, f.close))
        for (const std::string& other :
             names_in(model.text(*at + 1, std::min(x_s.statement_end(*at), f.close))))
          grew = x_constant.insert(other).second || grew;
  }
  find_loops();
}

void Slice::find_loops() {
  for (std::size_t i = x_f.open; i < x_f.close; ++i) {
    if (!x_s.is(i, "for") || !x_s.is(i + 1, "(")) continue;
    Loop loop{i, 0, i + 1, x_s.match(i + 1)};
    loop.end = x_s.is(loop.close + 1, "{") ? x_s.match(loop.close + 1) : loop.close + 1;
    // Without braces: a statement, perhaps another loop's.
    for (; !x_s.is(loop.close + 1, "{") && loop.end < x_f.close; ++loop.end) {
      if (x_s.is(loop.end, "(")) loop.end = x_s.match(loop.end);
      if (x_s.is(loop.end, "{")) loop.end = x_s.match(loop.end);
      if (x_s.is(loop.end, ";") || x_s.is(loop.end, "}")) break;
    }
    x_loops.push_back(loop);
  }
}

// The "{" of the innermost block that token `at` stands in.
std::size_t Slice::block_around(std::size_t at) const {
  std::size_t found = x_f.open;
  for (std::size_t i = x_f.open + 1; i < at; ++i)
    if (x_s.is(i, "{") && x_s.match(i) > at) found = i;
  return found;
}

// The token that declares the name, where it can be seen: the last one before.
std::optional<std::size_t> Slice::declared_at(const std::string& name, std::size_t before) const {
  std::optional<std::size_t> found;
  for (std::size_t i = x_f.open + 1; i < before; ++i) {
    if (!x_s[i].is(name)) continue;
    const bool typed = x_s[i - 1].is_identifier() &&
                       !x_s[i - 1].is_any({"return", "else", "case", "goto", "new", "delete"});
    const bool pointed =
        x_s.is(i - 1, "*") || x_s.is(i - 1, "&") || x_s.is(i - 1, ",") || x_s.is(i - 1, ">");
    const bool ends = x_s[i + 1].is_any({"=", ",", ";", "(", "{", "["});
    if (!ends || (!typed && !pointed)) continue;
    if (!typed) {  // "float *a, *b;", "int x = 1, y = 2;", "std::vector<int> v"
      if (x_s[i + 1].is_any({"("}) && !x_s.is(i - 1, ">")) continue;
      const std::size_t begin = x_s.statement_begin(i);
      const bool declares =
          x_s[begin].is_identifier() && !x_s[begin].is_any({"return", "if", "for", "while"}) &&
          (x_s[begin + 1].is_identifier() || x_s[begin + 1].is_any({"*", "::", "<", "&"}));
      if (!declares || is_in_value(begin, i)) continue;
    }
    const std::size_t block = block_around(i);
    if (x_s.match(block) < before && before != x_f.close) continue;  // out of sight
    found = i;
  }
  return found;
}

// Whether token i of a declaration that begins at `begin` stands in what a variable is set to.
bool Slice::is_in_value(std::size_t begin, std::size_t i) const {
  bool value = false;
  for (std::size_t j = begin; j < i; ++j) {
    if (x_s.is(j, "(") || x_s.is(j, "[") || x_s.is(j, "{")) {
      if (x_s.match(j) > i) return true;
      j = x_s.match(j);
    }
    if (x_s.is(j, "<") && x_s.close_angle(j) < x_s.size() && x_s.close_angle(j) > i) return true;
    if (x_s.is(j, "=")) value = true;
    if (x_s.is(j, ",")) value = false;
  }
  return value;
}

bool Slice::take_size(const std::string& name, const std::string& type) {
  const Role role = role_of(name, type);
  const bool tile = role == Role::kTileM || role == Role::kTileN;
  std::string expression;
  if (role == Role::kStride)
    expression = stride_expression(classify_size(name).stride);
  else if (!tile && role != Role::kUnknown && !is_tensor(role))
    expression = size_expression(role, x_facts);
  if (expression.empty()) return false;
  x_sizes[name] = role;
  x_heads.push_back(fmt::format("const {} {} = {};",
                                is_real(type)    ? "float"
                                : type == "bool" ? "bool"
                                                 : "int",
                                name, expression));
  return true;
}

bool Slice::take_parameter(const std::string& name) {
  for (const Parameter& p : x_f.parameters) {
    if (p.name != name) continue;
    if (p.is_pointer || !take_size(name, p.element)) x_unknown.insert(name);
    return true;
  }
  return false;
}

void Slice::keep(std::size_t begin, const std::string& text) {
  std::vector<std::string>& here = x_kept[begin];
  if (std::find(here.begin(), here.end(), text) == here.end()) here.push_back(text);
}

void Slice::take_declaration(const std::string& name, std::size_t declared, std::size_t used) {
  for (const Loop& loop : x_loops)
    if (declared > loop.open && declared < loop.close) {
      x_needed_loops.insert(loop.begin);
      return need(x_model.text(loop.open + 1, loop.close), loop.begin, {name});
    }
  const std::size_t begin = x_s.statement_begin(declared), end = x_s.statement_end(declared);
  const std::size_t stop = x_s.is(end, "{") ? x_s.match(end) + 1 : end;
  bool is_constant = false;
  std::string type;
  for (std::size_t i = begin; i < declared; ++i) {
    is_constant |= x_s.is(i, "constexpr");
    if (!x_s[i].is_any({"constexpr", "static", "const"}) && x_s[i].is_identifier() && type.empty())
      type = std::string(x_s[i].text);
  }
  const bool must_stay = x_constant.count(name) > 0;
  if (!must_stay && type != "dim3" && take_size(name, type)) return;
  // A statement may declare several: only this one is kept.
  std::string own = x_model.text(begin, stop);
  const std::vector<std::string> parts = x_model.split(begin, stop);
  if (parts.size() > 1) {
    std::string words;
    for (std::size_t i = begin; i < stop; ++i) {
      if (x_s.is(i + 1, "=") || x_s.is(i + 1, ",") || x_s.is(i + 1, "(")) break;
      words += std::string(x_s[i].text) + " ";
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::vector<std::string> names =
          names_in(parts[i].substr(0, parts[i].find_first_of("=(")));
      if (!names.empty() && names.back() == name) own = i == 0 ? parts[0] : words + parts[i];
    }
  }
  // What was a constant may be made of the problem's sizes here.
  if (is_constant && !must_stay) own.replace(own.find("constexpr"), 9, "const");
  need(own, begin, {name});
  keep(begin, own + ";");
  take_assignments(name, stop, used);
}

// "grid.x = ...;", "n += ...;" between the declaration and the use.
void Slice::take_assignments(const std::string& name, std::size_t from, std::size_t until) {
  for (std::size_t i = from; i < until; ++i) {
    if (!x_s[i].is(name) || !x_s[i - 1].is_any({";", "{", "}"})) continue;
    const std::size_t equals = x_s.is(i + 1, ".") ? i + 3 : i + 1;
    if (!x_s[equals].is_any({"=", "+=", "*=", "-=", "/="})) continue;
    const std::string text = x_model.text(i, x_s.statement_end(i));
    need(text, i, {name});
    keep(i, text + ";");
  }
}

void Slice::need(const std::string& text, std::size_t at, const std::set<std::string>& except) {
  for (const std::string& name : names_in(text)) {
    if (except.count(name) > 0 || x_done.count(name) > 0) continue;
    if (const auto declared = declared_at(name, at)) {
      x_done.insert(name);
      take_declaration(name, *declared, at);
    } else if (std::any_of(x_f.parameters.begin(), x_f.parameters.end(),
                           [&](const Parameter& p) { return p.name == name; })) {
      x_done.insert(name);
      take_parameter(name);
    } else if (x_f.is_member && name.ends_with("_") && take_size(name, "int")) {
      x_done.insert(name);  // a member of its class
    }
  }
}

// Whether a condition is one of the problem: of sizes, flags and constants alone.
bool Slice::is_known(const std::string& condition) const {
  for (const char* other : {"\"", "argc", "argv", "->", "."})
    if (condition.find(other) != std::string::npos) return false;
  const std::vector<std::string> names = names_in(condition);
  return !names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    if (name == "true" || name == "false" || x_model.value(name)) return true;
    const Role role = classify_size(name).role;
    return role != Role::kUnknown && !size_expression(role, x_facts).empty();
  });
}

// The condition under which an "if" or "else" before it reaches the statement or block that begins at `at`;
// "" if it is under none.
std::string Slice::condition_before(std::size_t at, std::vector<std::string>& out) const {
  if (at == 0) return "";
  if (x_s.is(at - 1, ")")) {
    const std::size_t open = x_s.match(at - 1);
    if (!x_s.is(open - 1, "if")) return "";
    const std::string condition = x_model.text(open + 1, at - 1);
    if (x_s.is(open - 2, "else")) condition_before(open - 1, out);
    out.push_back(condition);
    return condition;
  }
  if (!x_s.is(at - 1, "else")) return "";
  std::size_t begin = at - 2;  // the end of what is done if the condition holds
  const bool block = x_s.is(begin, "}");
  begin = block ? x_s.match(begin) : x_s.statement_begin(begin);
  while (!block && (x_s.is(begin, "if") || x_s.is(begin, "else")))
    begin = x_s.is(begin, "else") ? begin + 1 : x_s.match(begin + 1) + 1;
  std::vector<std::string> before;
  const std::string condition = condition_before(begin, before);
  if (condition.empty()) return "";
  before.back() = "!(" + condition + ")";
  out.insert(out.end(), before.begin(), before.end());
  return before.back();
}

std::vector<std::string> Slice::conditions_at(std::size_t at) const {
  std::vector<std::string> found;
  // Without braces: "if (a) x(); else y();". Past all heads before the statement itself.
  std::size_t begin = x_s.statement_begin(at);
  for (bool head = true; head && begin < at;) {
    head = false;
    if (x_s.is(begin, "else")) {
      ++begin;
      head = true;
    } else if (x_s.is(begin, "if") || x_s.is(begin, "for") || x_s.is(begin, "while")) {
      begin = x_s.match(begin + 1) + 1;
      head = true;
    }
    if (head && !x_s.is(begin, "if")) condition_before(begin, found);
  }
  for (std::size_t block = block_around(at); block > x_f.open; block = block_around(block))
    condition_before(block, found);
  std::vector<std::string> known;
  for (const std::string& condition : found)
    if (is_known(condition) && std::find(known.begin(), known.end(), condition) == known.end())
      known.push_back(condition);
  return known;
}

void Slice::add(std::size_t at, const std::string& text) {
  std::vector<std::string> conditions = conditions_at(at);
  for (const std::string& condition : conditions) need(condition, at);
  std::string own = text;
  if (conditions.size() == 1) own = fmt::format("if ({}) {}", conditions[0], text);
  if (conditions.size() > 1)
    own = fmt::format("if (({})) {}", fmt::join(conditions, ") && ("), text);
  for (const auto& [begin, lines] : x_kept)
    if (std::find(lines.begin(), lines.end(), own) != lines.end()) return;  // repeated for timing
  keep(at, own);
}

std::vector<std::string> Slice::lines() const {
  std::vector<std::string> out = x_heads;
  std::vector<const Loop*> open;
  const auto indent = [&] { return std::string(2 * open.size(), ' '); };
  const auto close_last = [&] {
    open.pop_back();
    out.push_back(indent() + "}");
  };
  for (const auto& [begin, texts] : x_kept) {
    while (!open.empty() && open.back()->end < begin) close_last();
    for (const Loop& loop : x_loops) {
      const bool inside = loop.close < begin && begin <= loop.end;
      if (!inside || x_needed_loops.count(loop.begin) == 0 ||
          std::find(open.begin(), open.end(), &loop) != open.end())
        continue;
      out.push_back(indent() + x_model.text(loop.begin, loop.close + 1) + " {");
      open.push_back(&loop);
    }
    for (const std::string& text : texts) out.push_back(indent() + text);
  }
  while (!open.empty()) close_last();
  return out;
}

}  // namespace attn_diag::adapt

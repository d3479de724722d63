#include "harness/repair/proposals.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "harness/toolchain/source/source_error.h"

namespace attn_diag::repair {

using Kind = ExpressionKind;

namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string without_blanks(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (!is_blank(c)) result += c;
  return result;
}

// How much differs between two texts: 2 for each word or sign that comes in, 1 for each that goes. Where things only go
// it is 2 more: what somebody has written is seldom superfluous, and "i < n" without "< n" agrees all too often.
int changed_tokens(std::string_view before, std::string_view after) {
  std::vector<std::string_view> a, b;
  try {
    for (const Token& token : source::tokenize(before, "").tokens) a.push_back(token.text);
    for (const Token& token : source::tokenize(after, "").tokens) b.push_back(token.text);
  } catch (const source::SourceError&) {
    return 0;
  }
  // The longest common sequence, row by row.
  std::vector<int> row(b.size() + 1, 0);
  for (const std::string_view word : a) {
    int diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int above = row[j + 1];
      row[j + 1] = word == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  const int common = row.back();
  const int come = static_cast<int>(b.size()) - common, go = static_cast<int>(a.size()) - common;
  return 2 * come + go + (come == 0 && go > 0 ? 2 : 0);
}

// Text that stood alone on its lines leaves no empty lines behind.
void take_whole_lines(const std::string& text, Edit& edit) {
  std::size_t begin = edit.begin, end = edit.end;
  while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t')) --begin;
  while (end < text.size() && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r')) ++end;
  if ((begin > 0 && text[begin - 1] != '\n') || end == text.size() || text[end] != '\n') return;
  edit.begin = begin;
  edit.end = end + 1;
}

}  // namespace

std::vector<const Variable*> Proposals::visible(std::size_t token) const {
  std::vector<const Variable*> found;
  std::set<std::string_view> names;
  // Inner ones hide outer ones.
  for (auto v = x_function.variables.rbegin(); v != x_function.variables.rend(); ++v)
    if (v->from <= token && token < v->to && names.insert(v->name).second) found.push_back(&*v);
  std::reverse(found.begin(), found.end());
  return found;
}

bool Proposals::is_integer_value(int expression) const { return is_integer(type(expression)); }
bool Proposals::is_real_value(int expression) const { return is_real(type(expression)); }

bool Proposals::is_name(std::size_t token, std::size_t begin) const {
  return code().token(token).is_identifier() &&
         !(token > begin && code().token(token - 1).is_any({".", "->", "::"}));
}

std::set<std::string_view> Proposals::names_in(std::size_t begin, std::size_t end) const {
  std::set<std::string_view> names;
  for (std::size_t i = begin; i < end; ++i)
    if (is_name(i, begin)) names.insert(code().token(i).text);
  return names;
}

bool Proposals::is_known_at(const Expression& e, std::size_t token) const {
  for (std::size_t i = e.begin; i < e.end; ++i) {
    if (!is_name(i, e.begin)) continue;
    const Token& t = code().token(i);
    const Variable* here = variable(t.text, i);
    if (here == nullptr) continue;
    // Another variable of this name will do, such as the counter of another loop.
    const Variable* there = variable(t.text, token);
    if (there == nullptr || there->type != here->type) return false;
  }
  return true;
}

std::vector<std::string> Proposals::values_at(std::size_t token, bool real) const {
  std::vector<std::string> found;
  constexpr std::size_t kLong = 60;  // nobody's small slip
  for (int i = 0; i < static_cast<int>(x_function.expressions.size()); ++i) {
    const Expression& e = at(i);
    if (e.constant || e.end - e.begin > 16 || e.kind == Kind::kAssignment ||
        e.kind == Kind::kParenthesis || e.kind == Kind::kOpaque || is_callee(i))
      continue;
    if (real ? !is_real_value(i) : !is_integer_value(i)) continue;
    const std::string text = words(e);
    if (text.size() > kLong || !is_known_at(e, token)) continue;
    if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(text);
  }
  return found;
}

bool Proposals::is_target(int expression) const {
  const Expression& e = at(expression);
  if (e.parent < 0) return false;
  const Expression& parent = at(e.parent);
  const bool first = !parent.parts.empty() && parent.parts[0] == expression;
  switch (parent.kind) {
    case Kind::kAssignment:
      return first;
    case Kind::kPostfix:
      return true;
    case Kind::kPrefix:
      return op(parent) == "++" || op(parent) == "--" || op(parent) == "&";
    case Kind::kMember:
    case Kind::kParenthesis:
      return is_target(e.parent);
    case Kind::kIndex:
      return first && is_target(e.parent);
    default:
      return false;
  }
}

bool Proposals::is_callee(int expression) const {
  const Expression& e = at(expression);
  if (e.parent < 0) return false;
  const Expression& parent = at(e.parent);
  return (parent.kind == Kind::kCall || parent.kind == Kind::kBraces) && !parent.parts.empty() &&
         parent.parts[0] == expression && parent.begin == e.begin;
}

bool Proposals::in_index(int expression) const {
  for (int i = expression; i >= 0; i = at(i).parent) {
    const int parent = at(i).parent;
    if (parent < 0) break;
    if (at(parent).kind == Kind::kIndex && at(parent).parts[0] != i) return true;
  }
  for (const Statement& s : x_function.statements)
    for (const int condition : s.conditions)
      if (at(condition).begin <= at(expression).begin && at(expression).end <= at(condition).end)
        return true;
  return false;
}

bool Proposals::in_macro(std::size_t token) const {
  const source::Syntax& s = *code().syntax;
  // The parentheses around it, inside out.
  std::size_t i = token;
  while (i-- > x_function.open) {
    if (s[i].is_any({")", "]", "}"})) {
      i = s.match(i);
      continue;
    }
    if (!s.is(i, "(") || i == 0 || !s[i - 1].is_identifier()) continue;
    const std::string_view name = s[i - 1].text;
    const bool capitals = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
    });
    if (capitals || name == "assert" ||
        std::find(x_program.macros.begin(), x_program.macros.end(), name) != x_program.macros.end())
      return true;
  }
  return false;
}

void Proposals::add(Edit edit, int more) {
  const std::string_view before =
      std::string_view(code().text).substr(edit.begin, edit.end - edit.begin);
  edit.size = changed_tokens(before, edit.text);
  if (edit.size == 0) return;
  edit.size += more;
  edit.file = x_file;
  edit.on_host = x_function.on_host;
  if (edit.statement_line == 0) edit.statement_line = edit.line;
  edit.last_line = edit.line + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  x_edits.push_back(std::move(edit));
}

// f<A>(x) of A; -1: it is no template's argument of a call.
int Proposals::call_with(int expression) const {
  const Expression& argument = at(expression);
  int found = -1;
  for (int i = 0; i < static_cast<int>(x_function.expressions.size()); ++i) {
    const Expression& e = at(i);
    if (e.kind != Kind::kCall || e.constant || e.parts.empty()) continue;
    const Expression& callee = at(e.parts[0]);
    if (callee.kind == Kind::kName && callee.begin < argument.begin && argument.end <= callee.end &&
        (found < 0 || at(found).begin < e.begin))
      found = i;
  }
  return found;
}

// l += p; stored to m instead: l loses a store, as if the statement were dropped, and m gets one.
int Proposals::size_of_store(int i) const {
  if (i < 0 || statement(i).kind != StatementKind::kExpression) return 0;
  const Statement& s = statement(i);
  return changed_tokens(code().written(s.begin, s.end), "");
}

bool Proposals::is_of_text(const Expression& e) const {
  if (e.statement < 0) return false;
  const Statement& s = statement(e.statement);
  if (s.kind != StatementKind::kExpression) return false;
  for (std::size_t i = s.begin; i < s.end; ++i)
    if (code().token(i).kind == source::TokenKind::kString) return true;
  return false;
}

void Proposals::replace(std::string_view operation, int tier, int expression, std::size_t begin,
                        std::size_t end, const std::string& text) {
  if (begin >= end || begin < at(expression).begin || end > at(expression).end) return;
  // What is written for people to read.
  if (x_function.on_host && is_of_text(at(expression))) return;
  // The compiler knows f<A>(x) and f<B>(x): of these one can be chosen. Not where that is another kernel to compile.
  if (const int call = at(expression).constant && !x_function.on_host ? call_with(expression) : -1;
      call >= 0)
    expression = call;
  const Expression& e = at(expression);
  Edit edit;
  edit.operation = operation;
  edit.tier = tier;
  edit.begin = code().token(begin).begin;
  edit.end = code().token(end - 1).end;
  edit.text = text;
  edit.line = code().line(begin);
  edit.site_begin = code().token(e.begin).begin;
  edit.site_end = code().token(e.end - 1).end;
  // Braces alone have no type of their own.
  edit.way = e.constant || code().token(e.begin).is("{") ? Way::kAlone : Way::kExpression;
  edit.alternative =
      fmt::format("{} {} {}", code().words(e.begin, begin), text, code().words(end, e.end));
  const std::string kind = type(expression);
  if ((is_integer(kind) || is_real(kind)) && !is_target(expression)) edit.number = words(e);
  edit.in_macro = in_macro(e.begin);
  // A whole statement: its alternatives need not be of one type.
  if (e.statement >= 0) edit.statement_line = code().line(statement(e.statement).begin);
  const Statement* const s = e.statement < 0 || e.parent >= 0 ? nullptr : &statement(e.statement);
  if (s != nullptr && s->kind == StatementKind::kExpression && s->begin == e.begin &&
      s->end == e.end + 1 && edit.way == Way::kExpression && !edit.in_macro) {
    edit.way = Way::kStatement;
    edit.site_end = code().token(e.end).end;
    edit.alternative += ";";
    edit.number.clear();
  }
  add(std::move(edit), is_target(expression) ? size_of_store(e.statement) : 0);
}

void Proposals::replace(std::string_view operation, int tier, int expression,
                        const std::string& text) {
  replace(operation, tier, expression, at(expression).begin, at(expression).end, text);
}

void Proposals::replace_statement(std::string_view operation, int tier, int index,
                                  const std::string& text, const std::string& on_one_line) {
  const Statement& s = statement(index);
  if (s.begin >= s.end) return;
  Edit edit;
  edit.operation = operation;
  edit.tier = tier;
  edit.begin = edit.site_begin = code().token(s.begin).begin;
  edit.end = edit.site_end = code().token(s.end - 1).end;
  edit.text = text;
  edit.line = code().line(s.begin);
  edit.way =
      s.kind == StatementKind::kDeclaration || in_macro(s.begin) ? Way::kAlone : Way::kStatement;
  edit.alternative = on_one_line.empty() ? text : on_one_line;
  if (text.empty()) take_whole_lines(code().text, edit);
  add(std::move(edit));
}

void Proposals::replace_two(std::string_view operation, int tier, int first, int second,
                            const std::string& text, const std::string& on_one_line) {
  const Statement &a = statement(first), &b = statement(second);
  Edit edit;
  edit.operation = operation;
  edit.tier = tier;
  edit.begin = edit.site_begin = code().token(a.begin).begin;
  edit.end = edit.site_end = code().token(b.end - 1).end;
  edit.text = text;
  edit.line = code().line(a.begin);
  const bool declares =
      a.kind == StatementKind::kDeclaration || b.kind == StatementKind::kDeclaration;
  edit.way = declares || in_macro(a.begin) ? Way::kAlone : Way::kStatement;
  edit.alternative = on_one_line;
  add(std::move(edit));
}

void Proposals::insert(std::string_view operation, int tier, int index, bool before,
                       const std::string& text) {
  const Statement& s = statement(index);
  if (!s.in_block || s.begin >= s.end) return;
  Edit edit;
  edit.operation = operation;
  edit.tier = tier;
  edit.begin = edit.end = edit.site_begin = edit.site_end =
      before ? code().token(s.begin).begin : code().token(s.end - 1).end;
  edit.line = code().line(before ? s.begin : s.end - 1);
  // On a line of its own, indented as the statement.
  const std::string& all = code().text;
  const std::size_t at = code().token(s.begin).begin;
  const std::size_t newline = all.rfind('\n', at == 0 ? 0 : at - 1);
  const std::size_t line = newline == all.npos ? 0 : newline + 1;
  std::string indent = all.substr(line, at - line);
  const bool own_line = std::all_of(indent.begin(), indent.end(), is_blank);
  if (!own_line)
    edit.text = before ? text + " " : " " + text;
  else
    edit.text = before ? text + "\n" + indent : "\n" + indent + text;
  edit.way = in_macro(s.begin) ? Way::kAlone : Way::kInsertion;
  edit.alternative = text;
  add(std::move(edit));
}

void Proposals::extend_declaration(std::string_view operation, int tier, int index,
                                   std::size_t behind, const std::string& text,
                                   const std::string& same) {
  const Statement& s = statement(index);
  Edit edit;
  edit.operation = operation;
  edit.tier = tier;
  edit.begin = edit.end = code().token(behind).end;
  edit.text = text;
  edit.line = code().line(behind);
  edit.site_begin = edit.site_end = code().token(s.end - 1).end;
  edit.way = s.in_block && !in_macro(s.begin) ? Way::kInsertion : Way::kAlone;
  edit.alternative = same;
  add(std::move(edit));
}

const Expression* assignment_in(const Proposals& p, const Statement& s) {
  if (s.kind != StatementKind::kExpression || s.expressions.size() != 1) return nullptr;
  const Expression& e = p.at(s.expressions[0]);
  return e.kind == Kind::kAssignment && e.parts.size() == 2 ? &e : nullptr;
}

std::string renamed(const Proposals& p, std::size_t begin, std::size_t end,
                    const std::map<std::string_view, std::string_view>& names) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    const Token& t = p.code().token(i);
    if (i > begin && t.begin > p.code().token(i - 1).end) text += ' ';
    const auto other = p.is_name(i, begin) ? names.find(t.text) : names.end();
    text += other == names.end() ? t.text : other->second;
  }
  return text;
}

std::string as_operand(const Proposals& p, int expression) {
  const Expression& e = p.at(expression);
  const bool whole = e.kind == Kind::kName || e.kind == Kind::kNumber ||
                     e.kind == Kind::kParenthesis || e.kind == Kind::kCall ||
                     e.kind == Kind::kIndex || e.kind == Kind::kMember;
  return whole ? p.words(e) : "(" + p.words(e) + ")";
}

std::vector<Edit> propose_edits(const Program& program) {
  std::vector<Edit> edits;
  for (std::size_t file = 0; file < program.files.size(); ++file) {
    const Code& code = *program.files[file];
    DeviceFunction outside;  // of the file's constants
    outside.expressions = code.constants;
    std::vector<const DeviceFunction*> functions;
    for (const DeviceFunction& f : code.functions) functions.push_back(&f);
    functions.push_back(&outside);
    for (const DeviceFunction* f : functions) {
      if (!code.syntax) break;
      Proposals to(program, static_cast<int>(file), *f, edits);
      std::vector<std::span<const Operation>> all = {expression_operations(), value_operations(),
                                                     call_operations(), index_operations()};
      // What a launching function does in which order concerns the program, not the kernel.
      if (!f->on_host)
        all.insert(all.end(),
                   {statement_operations(), elsewhere_operations(), insertion_operations()});
      for (const std::span<const Operation> operations : all)
        for (const Operation& operation : operations) operation.propose(to, operation.name);
    }
  }
  // Two operations can make one text: the more usual one is kept.
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.tier < b.tier; });
  std::set<std::tuple<int, std::size_t, std::size_t, std::string>> seen;
  std::erase_if(edits, [&](const Edit& e) {
    return !seen.emplace(e.file, e.begin, e.end, without_blanks(e.text)).second;
  });
  return edits;
}

std::string edited(const Code& code, const Edit& edit) {
  return code.text.substr(0, edit.begin) + edit.text + code.text.substr(edit.end);
}

}  // namespace attn_diag::repair

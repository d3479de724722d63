#include "harness/repair/proposals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

constexpr std::array<std::string_view, 18> kRealCalls = {
    "__expf",  "expf",      "exp2f", "__logf",           "logf",        "log2f",
    "__log2f", "fmaxf",     "fminf", "__half2float",     "sqrtf",       "rsqrtf",
    "fmaf",    "__fmaf_rn", "fabsf", "__bfloat162float", "__low2float", "__high2float"};

bool is_vector_member(std::string_view name) {
  return name == "x" || name == "y" || name == "z" || name == "w";
}

// "float" of "float[]", "float*".
std::string element_of(std::string type) {
  if (type.ends_with("[]"))
    type.resize(type.size() - 2);
  else if (type.ends_with("*"))
    type.pop_back();
  else
    return "";
  // "float[][]" loses its first extent, and "float*[]" holds pointers: the suffix is cut either way.
  return type;
}

bool is_numeric_for(std::string_view number, char kind) {
  const bool hex = number.starts_with("0x") || number.starts_with("0X");
  const bool real = !hex && (number.find('.') != number.npos || number.find('e') != number.npos ||
                             number.find('E') != number.npos || number.ends_with("f"));
  return real == (kind == 'r');
}

}  // namespace

std::string_view Proposals::op(const Expression& e) const {
  const Token& t = code().token(e.op);
  if (t.is(">") && code().token(e.op + 1).begin == t.end) {
    if (code().token(e.op + 1).is(">")) return ">>";
    if (code().token(e.op + 1).is(">=")) return ">>=";
  }
  return t.text;
}

const Variable* Proposals::variable(std::string_view name, std::size_t token) const {
  const Variable* found = nullptr;
  for (const Variable& v : x_function.variables)
    if (v.name == name && v.from <= token && token < v.to)
      if (found == nullptr || v.from >= found->from) found = &v;
  return found;
}

std::vector<const Variable*> Proposals::visible(std::size_t token) const {
  std::vector<const Variable*> found;
  std::set<std::string_view> names;
  // Inner ones hide outer ones.
  for (auto v = x_function.variables.rbegin(); v != x_function.variables.rend(); ++v)
    if (v->from <= token && token < v->to && names.insert(v->name).second) found.push_back(&*v);
  std::reverse(found.begin(), found.end());
  return found;
}

std::string Proposals::type(int expression) const {
  if (expression < 0) return "";
  const Expression& e = at(expression);
  const auto part = [&](std::size_t i) { return i < e.parts.size() ? type(e.parts[i]) : ""; };
  switch (e.kind) {
    case Kind::kName: {
      const Variable* v = variable(code().token(e.begin).text, e.begin);
      if (v != nullptr && e.end == e.begin + 1) return v->type;
      const std::string_view text = code().token(e.end - 1).text;
      if (text == "INFINITY" || text == "FLT_MAX" || text.starts_with("M_")) return "float";
      if (text == "warpSize") return "int";
      return "";
    }
    case Kind::kNumber:
      return is_numeric_for(code().token(e.begin).text, 'r') ? "float" : "int";
    case Kind::kParenthesis:
    case Kind::kPostfix:
      return e.parts.size() == 1 ? part(0) : "";
    case Kind::kPrefix: {
      const std::string_view o = op(e);
      if (o == "!") return "bool";
      if (o == "*") return element_of(part(0));
      if (o == "&") return part(0).empty() ? "" : part(0) + "*";
      return part(0);
    }
    case Kind::kCast: {
      const std::size_t close = code().syntax->match(e.begin);
      return close < e.end ? code().words(e.begin + 1, close) : "";
    }
    case Kind::kIndex:
      return element_of(part(0));
    case Kind::kMember: {
      const std::string_view name = code().token(e.op).text;
      const std::string_view object = code().token(e.begin).text;
      if (object == "threadIdx" || object == "blockIdx" || object == "blockDim" ||
          object == "gridDim")
        return "int";
      std::string of = part(0);
      while (of.ends_with("*")) of.pop_back();
      if (is_vector_member(name) && of.starts_with("float")) return "float";
      if (is_vector_member(name) && (of.starts_with("int") || of.starts_with("uint"))) return "int";
      if (const Record* record = x_program.record(of))
        for (const Variable& field : record->fields)
          if (field.name == name) return field.type;
      return "";
    }
    case Kind::kBinary: {
      const std::string_view o = op(e);
      if (o == "<" || o == ">" || o == "<=" || o == ">=" || o == "==" || o == "!=" || o == "&&" ||
          o == "||")
        return "bool";
      const std::string left = part(0), right = part(1);
      if (left.ends_with("*") || left.ends_with("]")) return left;
      if (is_real(left) || is_real(right)) return "float";
      if (is_integer(left) && is_integer(right)) return "int";
      return left == right ? left : "";
    }
    case Kind::kAssignment:
      return part(0);
    case Kind::kConditional:
      return part(1).empty() ? part(2) : part(1);
    case Kind::kCall: {
      if (e.parts.empty()) return "";
      const Expression& callee = at(e.parts[0]);
      const std::string name = words(callee);
      if (std::find(kRealCalls.begin(), kRealCalls.end(), name) != kRealCalls.end()) return "float";
      if (name == "min" || name == "max") return part(1);
      if (name.starts_with("__shfl_")) return part(2);
      if (name == "__ldg") return element_of(part(1));
      if (name.starts_with("static_cast<")) return name.substr(12, name.size() - 13);
      if (name == "int" || name == "float") return name;
      return "";
    }
    default:
      return "";
  }
}

bool Proposals::is_integer_value(int expression) const { return is_integer(type(expression)); }
bool Proposals::is_real_value(int expression) const { return is_real(type(expression)); }

bool Proposals::is_known_at(const Expression& e, std::size_t token) const {
  for (std::size_t i = e.begin; i < e.end; ++i) {
    const Token& t = code().token(i);
    if (!t.is_identifier()) continue;
    if (i > e.begin && code().token(i - 1).is_any({".", "->", "::"})) continue;
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

void Proposals::add(Edit edit) {
  const std::string_view before =
      std::string_view(code().text).substr(edit.begin, edit.end - edit.begin);
  edit.size = changed_tokens(before, edit.text);
  if (edit.size == 0) return;
  edit.file = x_file;
  x_edits.push_back(std::move(edit));
}

void Proposals::replace(std::string_view operation, int tier, int expression, std::size_t begin,
                        std::size_t end, const std::string& text) {
  const Expression& e = at(expression);
  if (begin >= end || begin < e.begin || end > e.end) return;
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
  add(std::move(edit));
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

void Proposals::swap(std::string_view operation, int tier, int first, int second,
                     const std::string& between) {
  const Statement &a = statement(first), &b = statement(second);
  Edit edit;
  edit.operation = operation;
  edit.tier = tier;
  edit.begin = edit.site_begin = code().token(a.begin).begin;
  edit.end = edit.site_end = code().token(b.end - 1).end;
  edit.text = std::string(code().written(b.begin, b.end)) + between +
              std::string(code().written(a.begin, a.end));
  edit.line = code().line(a.begin);
  const bool declares =
      a.kind == StatementKind::kDeclaration || b.kind == StatementKind::kDeclaration;
  edit.way = declares || in_macro(a.begin) ? Way::kAlone : Way::kStatement;
  edit.alternative = code().words(b.begin, b.end) + " " + code().words(a.begin, a.end);
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
      for (const auto operations :
           {expression_operations(), value_operations(), call_operations(), statement_operations()})
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

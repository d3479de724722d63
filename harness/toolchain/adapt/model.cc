#include "harness/toolchain/adapt/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "attn_diag/harness/error.h"
#include "harness/toolchain/adapt/codes.h"
#include "harness/toolchain/source/source_error.h"

namespace attn_diag::adapt {

bool says_index(const std::string& type) {
  std::string lower = type;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("index") != lower.npos || lower.find("idx") != lower.npos;
}
namespace {

using source::Syntax;
using source::Token;
using source::TokenKind;

bool is_type_word(const std::string& word) {
  static const std::set<std::string> words = {
      "const",     "volatile", "__restrict__",      "__restrict",
      "restrict",  "struct",   "__grid_constant__", "typename",
      "constexpr", "static",   "register"};
  return words.count(word) > 0;
}

// Words, "::" joined, and punctuators of a text.
std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> out;
  try {
    const source::TokenList list = source::tokenize(text, "parameter");
    for (const Token& t : list.tokens) out.emplace_back(t.text);
  } catch (const source::SourceError&) {
  }
  return out;
}

std::optional<std::int64_t> constant_value(const std::string& name, const void* context) {
  return static_cast<const Model*>(context)->value(name);
}

bool is_identifier(const std::string& text) {
  return !text.empty() &&
         (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '_');
}

}  // namespace

Parameter parse_parameter(const std::string& text) {
  Parameter p;
  std::vector<std::string> words = pieces(text);
  const auto equals = std::find(words.begin(), words.end(), "=");
  p.has_default = equals != words.end();
  words.erase(equals, words.end());
  // An array: "float x[]", "int shape[4]".
  const auto bracket = std::find(words.begin(), words.end(), "[");
  const bool is_array = bracket != words.end();
  words.erase(bracket, words.end());
  int depth = 0;
  std::size_t name = words.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    depth += words[i] == "<" ? 1 : words[i] == ">" ? -1 : 0;
    if (depth == 0 && is_identifier(words[i]) && !is_type_word(words[i])) name = i;
  }
  // The last word is the name, unless it is all there is of a type.
  bool has_type = false;
  for (std::size_t i = 0; i < name && i < words.size(); ++i)
    has_type |= is_identifier(words[i]) && !is_type_word(words[i]);
  if (name < words.size() && has_type && !(name > 0 && words[name - 1] == "::")) {
    p.name = words[name];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(name));
  }
  depth = 0;
  for (const std::string& word : words) {
    depth += word == "<" ? 1 : 0;
    p.is_pointer |= word == "*" && depth == 0;
    p.is_const |= word == "const" && !p.is_pointer;
    const bool glue = word == "::" || word == "<" || word == ">" || word == "," ||
                      (!p.type.empty() && (p.type.ends_with("::") || p.type.ends_with("<")));
    p.type += (p.type.empty() || glue || word == "*" || word == "&" ? "" : " ") + word;
    // What stands behind "*" is a qualifier, under whatever name a macro has for it.
    if (!is_type_word(word) && word != "*" && word != "&" &&
        !(p.is_pointer && depth == 0 && is_identifier(word)))
      p.element += (!p.element.empty() && is_identifier(word) &&
                            is_identifier(std::string(1, p.element.back()))
                        ? " "
                        : "") +
                   word;
    depth -= word == ">" ? 1 : 0;
  }
  p.is_pointer |= is_array;
  return p;
}

Model::Model(const std::filesystem::path& source)
    : x_code(std::make_unique<Code>(read_code(source))) {
  try {
    x_syntax = std::make_unique<Syntax>(x_code->list);
  } catch (const source::SourceError& e) {
    throw Error(fmt::format(
        "{}:{}: {}. Macros or #if branches may hide the other half; adapt reads the source without "
        "preprocessing it.",
        e.where().file, e.where().line, e.what()));
  }
  add_aliases();
  add_constants();
  add_structures();
  for (const source::Function& f : x_syntax->functions()) add_function(f);
  add_kernels_by_address();
  add_stored_logs();
}

// auto kernel = causal ? &attend<true> : &attend<false>; kernel<<<...>>>(...).
void Model::add_kernels_by_address() {
  const Syntax& s = *x_syntax;
  std::set<std::string_view> kernels;
  for (const FunctionModel& f : x_functions)
    if (f.is_kernel) kernels.insert(f.name);
  for (FunctionModel& f : x_functions) {
    for (std::size_t i = f.open; i < f.close && !f.is_kernel && !f.is_device; ++i)
      if (kernels.count(s[i].text) > 0) f.calls.emplace(s[i].text);
    for (Launch& launch : f.launches)
      for (std::size_t i = f.open; i < launch.at && kernels.count(launch.kernel) == 0; ++i) {
        if (!s[i].is(launch.kernel) || !s.is(i + 1, "=")) continue;
        const std::size_t end = s.statement_end(i);
        for (std::size_t j = i + 2; j < end; ++j)
          if (kernels.count(s[j].text) > 0) {
            launch.kernel = std::string(s[j].text);
            break;
          }
      }
  }
}

const FunctionModel* Model::function(const std::string& name) const {
  for (const FunctionModel& f : x_functions)
    if (f.name == name) return &f;
  return nullptr;
}

std::vector<TemplateParameter> Model::template_parameters(std::size_t open) const {
  std::vector<TemplateParameter> out;
  for (const std::string& text : split(open + 1, x_syntax->close_angle(open))) {
    TemplateParameter t;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos)
      t.default_text = text.substr(text.find_first_not_of(" =", equals));
    const std::vector<std::string> words = pieces(text.substr(0, equals));
    if (words.empty()) continue;
    t.kind = words.front();
    t.name = words.size() > 1 ? words.back() : "";
    out.push_back(t);
  }
  return out;
}

// Params<half> of "template <class T> struct Params": the members of that, of half.
std::optional<StructModel> Model::instance_of(const std::string& name) const {
  const std::size_t open = name.find('<');
  if (open == std::string::npos || !name.ends_with(">")) return std::nullopt;
  std::optional<StructModel> out = structure(name.substr(0, open));
  if (!out) return std::nullopt;
  const std::vector<std::string> given = split_text(name.substr(open + 1, name.size() - open - 2));
  std::map<std::string, std::string> arguments;
  for (std::size_t i = 0; i < out->templates.size(); ++i) {
    const TemplateParameter& t = out->templates[i];
    const auto same = arguments.find(t.default_text);  // class A = T
    arguments[t.name] = i < given.size()          ? given[i]
                        : same != arguments.end() ? same->second
                                                  : t.default_text;
  }
  for (Parameter& member : out->members)
    if (const auto argument = arguments.find(member.element); argument != arguments.end()) {
      const std::size_t at = member.type.find(argument->first);
      if (at != std::string::npos)
        member.type.replace(at, argument->first.size(), argument->second);
      member.element = argument->second;
    }
  return out;
}

std::optional<StructModel> Model::structure(const std::string& name) const {
  const auto found = x_structures.find(resolve_type(name));
  if (found == x_structures.end()) return instance_of(name);
  StructModel out = found->second;
  for (const std::string& base : found->second.bases)
    if (base != name)
      if (const auto inherited = structure(base))
        out.members.insert(out.members.begin(), inherited->members.begin(),
                           inherited->members.end());
  return out;
}

std::string Model::qualified_type(const std::string& name) const {
  const auto found = x_structures.find(resolve_type(name.substr(0, name.find('<'))));
  return found == x_structures.end() || name.find("::") != std::string::npos
             ? name
             : found->second.scope + name;
}

std::optional<std::int64_t> Model::value(const std::string& expression) const {
  if (expression == "true" || expression == "false") return expression == "true" ? 1 : 0;
  const auto constant = x_constants.find(expression);
  if (constant != x_constants.end() && constant->second != expression)
    return evaluate(constant->second, constant_value, this);
  const auto macro = x_code->macros.find(expression);
  if (macro != x_code->macros.end() && macro->second != expression)
    return evaluate(macro->second, constant_value, this);
  if (is_identifier(expression) &&
      expression.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos)
    return std::nullopt;
  return evaluate(expression, constant_value, this);
}

std::string Model::resolve_type(const std::string& name) const {
  const auto alias = x_aliases.find(name);
  if (alias != x_aliases.end() && alias->second != name) return alias->second;
  const auto macro = x_code->macros.find(name);
  return macro != x_code->macros.end() && is_identifier(macro->second) ? macro->second : name;
}

std::string Model::text(std::size_t begin, std::size_t end) const {
  std::string out;
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin && (*x_syntax)[i].begin > (*x_syntax)[i - 1].end) out += ' ';
    out += (*x_syntax)[i].text;
  }
  return out;
}

std::vector<std::string> Model::split(std::size_t begin, std::size_t end) const {
  const Syntax& s = *x_syntax;
  std::vector<std::string> parts;
  std::size_t start = begin;
  for (std::size_t i = begin; i < end; ++i) {
    if (s.is(i, "(") || s.is(i, "[") || s.is(i, "{")) {
      i = s.match(i);
    } else if (s.is(i, "<") && i > begin && s[i - 1].is_identifier()) {
      const std::size_t close = s.close_angle(i);
      if (close < end) i = close;
    } else if (s.is(i, ",")) {
      parts.push_back(text(start, i));
      start = i + 1;
    }
  }
  if (start < end) parts.push_back(text(start, end));
  return parts;
}

std::vector<std::string> Model::split_text(const std::string& given) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : given) {
    depth += c == '(' || c == '[' || c == '{' || c == '<' ? 1 : 0;
    depth -= c == ')' || c == ']' || c == '}' || c == '>' ? 1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else if (c != ' ' || !parts.back().empty())
      parts.back() += c;
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

bool Model::mentions(const FunctionModel& f, const std::string& word) const {
  for (std::size_t i = f.open; i < f.close; ++i)
    if ((*x_syntax)[i].is(word)) return true;
  return false;
}

// "a::b::" for what stands in namespaces a and b; "" for unnamed ones.
std::string Model::scope_of(std::size_t at, bool& in_class, std::string* owner) const {
  const Syntax& s = *x_syntax;
  std::string scope;
  for (std::size_t i = 0; i < at; ++i) {
    if (!s.is(i, "{") || s.match(i) < at) {
      if (s.is(i, "{")) i = s.match(i);
      continue;
    }
    const std::size_t begin = s.statement_begin(i);
    if (s.is(begin, "namespace") || (s.is(begin, "inline") && s.is(begin + 1, "namespace"))) {
      for (std::size_t j = begin; j < i; ++j)
        if (s[j].is_identifier() && !s.is(j, "namespace") && !s.is(j, "inline"))
          scope += std::string(s[j].text) + "::";
    } else if (!s.is(begin, "extern")) {
      in_class = true;
      for (std::size_t j = begin; owner != nullptr && j + 1 < i; ++j)
        if (s.is(j, "class") || s.is(j, "struct")) *owner = scope + std::string(s[j + 1].text);
    }
  }
  return scope;
}

void Model::add_function(const source::Function& f) {
  const Syntax& s = *x_syntax;
  FunctionModel out;
  out.name = std::string(s[f.name].text);
  out.qualified = scope_of(f.begin, out.is_member, &out.owner) + out.name;
  for (std::size_t j = f.begin; j < f.name; ++j)
    out.is_static |= out.is_member && s.is(j, "static");
  if (f.name > 0 && s.is(f.name - 1, "::")) out.is_member = true;
  out.is_kernel = f.is_kernel;
  out.is_device = f.is_device && !f.is_kernel;
  out.name_at = f.name;
  out.open = f.open;
  out.close = f.close;
  out.file = s.file(f.name);
  out.line = s.line(f.name);
  std::size_t i = f.begin;
  if (s.is(i, "template") && s.is(i + 1, "<")) {
    out.templates = template_parameters(i + 1);
    i = s.close_angle(i + 1) + 1;
  }
  for (std::size_t j = i; j < f.name; ++j) {
    if (s.is(j, "__launch_bounds__") && s.is(j + 1, "(")) {
      const std::vector<std::string> bounds = split(j + 2, s.match(j + 1));
      if (!bounds.empty()) out.launch_bounds = bounds.front();
      j = s.match(j + 1);
      continue;
    }
    const std::string word(s[j].text);
    static const std::set<std::string> specifiers = {"static",     "inline",         "extern",
                                                     "__global__", "__host__",       "__device__",
                                                     "constexpr",  "__forceinline__"};
    if (specifiers.count(word) > 0 || s[j].kind == TokenKind::kString) continue;
    out.return_type += (out.return_type.empty() || word == "*" || word == "&" || word == "::" ||
                                out.return_type.ends_with("::")
                            ? ""
                            : " ") +
                       word;
  }
  for (const std::string& text : split(f.parameters + 1, s.match(f.parameters)))
    if (text != "void") {
      out.parameters.push_back(parse_parameter(text));
      // using fp8 = __nv_fp8_e4m3: of codes the type itself tells.
      Parameter& p = out.parameters.back();
      if (const std::string type = resolve_type(p.element); is_code_type(type)) p.element = type;
      const bool is_of_template =
          std::any_of(out.templates.begin(), out.templates.end(),
                      [&](const TemplateParameter& t) { return t.name == p.element; });
      if (is_of_template && says_index(p.element)) p.element = "int";
    }
  add_launches(out);
  x_functions.push_back(std::move(out));
}

}  // namespace attn_diag::adapt

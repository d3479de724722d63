#include "harness/repair/code.h"

#include <algorithm>
#include <array>
#include <set>

#include "harness/repair/parser.h"
#include "harness/repair/types.h"
#include "harness/toolchain/source/source_error.h"

namespace attn_diag::repair {

using source::Function;
using source::Syntax;
using source::TokenKind;

namespace {

constexpr std::array<std::string_view, 28> kIntegers = {"int",           "unsigned",
                                                        "unsigned int",  "long",
                                                        "long long",     "unsigned long",
                                                        "long int",      "long long int",
                                                        "short",         "unsigned short",
                                                        "char",          "signed char",
                                                        "unsigned char", "bool",
                                                        "size_t",        "std::size_t",
                                                        "int8_t",        "uint8_t",
                                                        "int16_t",       "uint16_t",
                                                        "int32_t",       "uint32_t",
                                                        "int64_t",       "uint64_t",
                                                        "uint",          "unsigned long long",
                                                        "std::int64_t",  "std::uint32_t"};

// "#define NAME text" or "#define NAME(a) text".
struct Macro {
  std::string name, text;
  bool takes_arguments = false;
};

std::optional<Macro> macro_of(std::string_view directive) {
  std::size_t i = directive.find_first_not_of(" \t", 1);
  if (i == directive.npos || !directive.substr(i).starts_with("define")) return std::nullopt;
  i = directive.find_first_not_of(" \t", i + 6);
  if (i == directive.npos) return std::nullopt;
  std::size_t end = i;
  const auto names = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  while (end < directive.size() && names(directive[end])) ++end;
  Macro macro;
  macro.name = directive.substr(i, end - i);
  macro.takes_arguments = end < directive.size() && directive[end] == '(';
  macro.text = directive.substr(end);
  return macro;
}

// The names of the namespaces, classes and functions around a token, outermost first; a function's is empty.
using Scope = std::vector<std::string>;

struct Constant {
  Variable variable;
  Scope scope;
};

// What files share.
struct Outside {
  std::vector<Constant> constants;       // and macros that are numbers
  std::vector<Scope> used;               // namespaces: using namespace a::b;
  std::set<std::string> device_words;    // macros that say __device__
  std::set<std::string> integers;        // names of integer types: using i64 = long long
  std::set<std::string_view> launchers;  // functions of the host by which kernels are launched
};

void read_macros(const Code& code, Outside& outside, Program& program) {
  for (const Token& t : code.list.tokens) {
    if (t.kind != TokenKind::kDirective) continue;
    const std::optional<Macro> macro = macro_of(t.text);
    if (!macro) continue;
    if (macro->takes_arguments) {
      program.macros.push_back(macro->name);
    } else if (macro->text.find("__device__") != std::string::npos ||
               macro->text.find("__global__") != std::string::npos) {
      outside.device_words.insert(macro->name);
    } else {
      // A number, or made of numbers.
      const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
      const std::string body = macro->text.substr(0, macro->text.find("/*"));
      const std::string text = body.substr(0, body.find("//"));
      if (std::none_of(text.begin(), text.end(), digit) ||
          text.find_first_of("\"{};=") != std::string::npos)
        continue;
      Variable v;
      v.name = macro->name;
      v.type = text.find('.') == std::string::npos ? "int" : "float";
      v.constant = true;
      v.to = static_cast<std::size_t>(-1);
      v.declared = static_cast<std::size_t>(-1);
      outside.constants.push_back({std::move(v), {}});
    }
  }
}

Scope scope_of(const Syntax& s, std::size_t token) {
  Scope scope;
  for (std::size_t open = 0; open < token; ++open) {
    if (!s.is(open, "{") || s.match(open) < token) continue;
    std::size_t i = s.statement_begin(open);
    while (i < open && !s[i].is_any({"namespace", "struct", "class", "union"})) ++i;
    if (i == open) {
      scope.emplace_back();
      continue;
    }
    const bool is_namespace = s.is(i, "namespace");
    for (++i; i < open && !s.is(i, ":"); ++i)
      if (s[i].is_identifier()) {
        scope.emplace_back(s[i].text);
        if (!is_namespace) break;
      }
  }
  return scope;
}

bool begins_with(const Scope& scope, const Scope& outer) {
  return outer.size() <= scope.size() && std::equal(outer.begin(), outer.end(), scope.begin());
}

// Whether a constant can be named without saying where it is.
bool is_visible(const Constant& constant, const Scope& from, const Outside& outside) {
  return begins_with(from, constant.scope) ||
         std::any_of(outside.used.begin(), outside.used.end(), [&](const Scope& used) {
           return used.size() <= constant.scope.size() &&
                  std::equal(used.rbegin(), used.rend(), constant.scope.rbegin());
         });
}

void read_used_namespaces(const Syntax& s, Outside& outside) {
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!s.is(i, "using") || !s.is(i + 1, "namespace")) continue;
    Scope used;
    for (std::size_t j = i + 2; j < s.size() && !s.is(j, ";"); ++j)
      if (s[j].is_identifier()) used.emplace_back(s[j].text);
    outside.used.push_back(std::move(used));
  }
}

// typedef unsigned u32; using i64 = long long;
void read_integer_names(const Syntax& s, Outside& outside) {
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!s[i].is_any({"typedef", "using"})) continue;
    const std::size_t end = s.statement_end(i);
    if (!s.is(end, ";") || end < i + 3) continue;
    const bool is_typedef = s.is(i, "typedef");
    if (!is_typedef && !s.is(i + 2, "=")) continue;
    std::string type;
    for (std::size_t j = is_typedef ? i + 1 : i + 3; j < (is_typedef ? end - 1 : end); ++j)
      type +=
          (type.empty() || s.is(j, "::") || s.is(j - 1, "::") ? "" : " ") + std::string(s[j].text);
    if (is_integer(type))
      outside.integers.insert(std::string(s[is_typedef ? end - 1 : i + 1].text));
  }
}

bool lies_in_function(const Syntax& s, std::size_t token) {
  const Function* around = s.function_around(token);
  return around != nullptr && token > around->open && token < around->close;
}

void read_records(Code& code, const std::set<std::string>& device_words) {
  const Syntax& s = *code.syntax;
  const auto none = [](std::string_view) { return false; };
  for (std::size_t i = 0; i + 2 < s.size(); ++i) {
    if (!s[i].is_any({"struct", "class"}) || lies_in_function(s, i)) continue;
    std::size_t name = i + 1;
    while (s[name].is_any({"alignas", "__align__"}) && s.is(name + 1, "("))
      name = s.match(name + 1) + 1;
    if (!s[name].is_identifier()) continue;
    std::size_t open = name + 1;
    while (open < s.size() && !s[open].is_any({"{", ";", "(", ")", ">", ",", "="})) ++open;
    if (!s.is(open, "{")) continue;
    Record record;
    record.name = s[name].text;
    record.open = open;
    record.close = s.match(open);
    for (std::size_t j = open + 1; j < record.close;) {
      std::size_t end = j;
      bool braces = false;
      while (end < record.close && !s.is(end, ";")) {
        if (s.is(end, "{")) braces = true;
        if (s[end].is_any({"(", "[", "{"})) end = s.match(end);
        ++end;
        if (braces && s.is(end - 1, "}") && !s.is(end, ";") && !s.is(end, ",")) break;
      }
      if (const auto type = declared_type(s, j, end + 1, none);
          type && !device_words.contains(type->type))
        for (const Declarator& d : declarators(s, type->end, end)) {
          if (d.has_initialiser && s.is(d.initialiser.begin, "(")) continue;  // a function
          Variable v;
          v.name = s[d.name].text;
          v.type = type->type + d.type_suffix;
          v.constant = type->constant;
          v.declared = d.name;
          record.fields.push_back(std::move(v));
        }
      j = end + 1;
    }
    code.records.push_back(std::move(record));
  }
}

// Constants outside functions: constexpr int kTile = 32, kRows = 2 * kTile;
void read_constants(Code& code, Outside& outside) {
  const Syntax& s = *code.syntax;
  const auto none = [](std::string_view) { return false; };
  DeviceFunction scratch;
  Parser parser(s, scratch);
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!s[i].is_any({"constexpr", "const"}) || s.function_around(i) != nullptr) continue;
    const std::size_t begin = s.statement_begin(i);
    const std::size_t end = s.statement_end(i);
    const auto type = declared_type(s, begin, s.size(), none);
    if (!type || end >= s.size()) continue;
    if (begin > 0 && !s[begin - 1].is_any({";", "{", "}"}) &&
        s[begin - 1].kind != TokenKind::kDirective)
      continue;              // a parameter, or template arguments
    std::size_t stop = end;  // an initialiser in braces has its ";" behind it
    while (stop < s.size() && !s.is(stop, ";")) {
      if (s[stop].is_any({"(", "[", "{"})) stop = s.match(stop);
      ++stop;
    }
    for (const Declarator& d : declarators(s, type->end, stop)) {
      if (!d.has_initialiser || s.is(d.initialiser.begin, "(")) continue;
      parser.constant(d.initialiser.begin, d.initialiser.end);
      Variable v;
      v.name = s[d.name].text;
      v.type = type->type + d.type_suffix;
      v.constant = true;
      v.to = static_cast<std::size_t>(-1);
      v.declared = static_cast<std::size_t>(-1);
      outside.constants.push_back({std::move(v), scope_of(s, i)});
    }
    i = stop;
  }
  code.constants = std::move(scratch.expressions);
  // Of a lambda's statements nothing is kept.
  for (Expression& e : code.constants) e.statement = -1;
}

// "float" of "template <int N> __device__ __forceinline__ float f(int n)".
std::string returned_type(const Syntax& s, const Function& function,
                          const std::set<std::string>& device_words) {
  std::size_t i = function.begin;
  while (s.is(i, "template") && s.is(i + 1, "<")) i = s.close_angle(i + 1) + 1;
  while (i < function.name && (s[i].is_any({"__global__", "friend", "virtual"}) ||
                               device_words.contains(std::string(s[i].text))))
    ++i;
  const auto type = declared_type(s, i, function.name + 1, [](std::string_view) { return false; });
  if (!type || type->end > function.name) return "";
  std::string suffix;
  for (std::size_t j = type->end; j < function.name; ++j)
    if (s.is(j, "*")) suffix += '*';
  return type->type + suffix;
}

// const int kTile = 32; is no constexpr, but must be known to the compiler where it is an extent or a template's
// argument.
void mark_constants(const Code& code, DeviceFunction& f) {
  const auto must_be_known = [&](const Variable& v) {
    return std::any_of(f.expressions.begin(), f.expressions.end(), [&](const Expression& e) {
      return e.constant && e.kind == ExpressionKind::kName && v.from <= e.begin && e.begin < v.to &&
             code.words(e.begin, e.end) == v.name;
    });
  };
  // Those whose values others have stand before them.
  for (auto v = f.variables.rbegin(); v != f.variables.rend(); ++v) {
    if (v->constant || !v->is_const || v->initialiser < 0 || !is_integer(v->type) ||
        !must_be_known(*v))
      continue;
    v->constant = true;
    std::vector<int> within = {v->initialiser};
    while (!within.empty()) {
      Expression& e = f.expressions[static_cast<std::size_t>(within.back())];
      within.pop_back();
      e.constant = true;
      within.insert(within.end(), e.parts.begin(), e.parts.end());
    }
  }
}

void read_function(Code& code, const Function& function, const Outside& outside) {
  const Syntax& s = *code.syntax;
  DeviceFunction f;
  f.name = s[function.name].text;
  f.is_kernel = function.is_kernel;
  f.open = function.open;
  f.close = function.close;
  const Scope scope = scope_of(s, function.name);
  for (const Constant& constant : outside.constants)
    if (is_visible(constant, scope, outside)) f.variables.push_back(constant.variable);
  for (const Record& record : code.records)
    if (record.open < f.open && f.close < record.close)
      for (Variable v : record.fields) {
        v.from = f.open;
        v.to = f.close;
        f.variables.push_back(v);
      }
  Parser parser(s, f);
  for (std::size_t i = function.begin; s.is(i, "template") && s.is(i + 1, "<");) {
    parser.template_parameters(i + 1);
    i = s.close_angle(i + 1) + 1;
  }
  // Template parameters of the classes around it.
  for (const Record& record : code.records)
    if (record.open < f.open && f.close < record.close) {
      const std::size_t begin = s.statement_begin(record.open);
      if (s.is(begin, "template") && s.is(begin + 1, "<")) parser.template_parameters(begin + 1);
    }
  f.returns = returned_type(s, function, outside.device_words);
  parser.parameters(function.parameters);
  parser.body(function.open);
  for (const std::string& name : outside.integers) {
    if (f.returns == name) f.returns = "int64_t";
    for (Variable& v : f.variables)
      if (v.type == name) v.type = "int64_t";
  }
  mark_constants(code, f);
  code.functions.push_back(std::move(f));
}

bool is_device(const Syntax& s, const Function& function, const Outside& outside) {
  bool device = function.is_device;
  for (std::size_t i = function.begin; i < function.parameters && !device; ++i)
    device = outside.device_words.contains(std::string(s[i].text));
  return device;
}

// Notes functions of the host that launch kernels, or call one that does. Whether there were more of them.
bool read_launchers(const Syntax& s, Outside& outside) {
  bool more = false;
  for (const Function& function : s.functions()) {
    const std::string_view name = s[function.name].text;
    if (is_device(s, function, outside) || outside.launchers.contains(name)) continue;
    for (std::size_t i = function.open; i < function.close; ++i)
      if (s.is(i, "<<<") || (s.is(i + 1, "(") && outside.launchers.contains(s[i].text))) {
        more = outside.launchers.insert(name).second;
        break;
      }
  }
  return more;
}

void read_functions(Code& code, const Outside& outside) {
  const Syntax& s = *code.syntax;
  for (const Function& function : s.functions()) {
    const bool device = is_device(s, function, outside);
    if (!device && !outside.launchers.contains(s[function.name].text)) continue;
    read_function(code, function, outside);
    code.functions.back().on_host = !device;
  }
}

}  // namespace

std::string_view Code::written(std::size_t begin, std::size_t end) const {
  if (begin >= end) return {};
  return std::string_view(text).substr(token(begin).begin, token(end - 1).end - token(begin).begin);
}

std::string Code::words(std::size_t begin, std::size_t end) const {
  return source::words(text, *syntax, begin, end);
}

const Record* Program::record(std::string_view type) const {
  for (const auto& code : files)
    for (const Record& record : code->records)
      if (record.name == type) return &record;
  return nullptr;
}

Program take_apart(const std::vector<SourceFile>& files) {
  Program program;
  Outside outside;
  for (const SourceFile& file : files) {
    auto code = std::make_unique<Code>();
    code->path = file.path;
    code->shown = file.shown;
    code->text = file.text;
    try {
      code->list = source::tokenize(code->text, code->path);
      code->syntax = std::make_unique<Syntax>(code->list);
    } catch (const source::SourceError& e) {
      code->problem = e.what();
      code->syntax = nullptr;
    }
    program.files.push_back(std::move(code));
  }
  for (const auto& code : program.files) {
    if (!code->syntax) continue;
    read_macros(*code, outside, program);
    read_integer_names(*code->syntax, outside);
    read_used_namespaces(*code->syntax, outside);
  }
  for (const auto& code : program.files) {
    if (!code->syntax) continue;
    read_records(*code, outside.device_words);
    read_constants(*code, outside);
  }
  for (bool more = true; more;) {
    more = false;
    for (const auto& code : program.files)
      if (code->syntax && read_launchers(*code->syntax, outside)) more = true;
  }
  for (const auto& code : program.files)
    if (code->syntax) read_functions(*code, outside);
  deduce_types(program);
  return program;
}

bool is_integer(std::string_view type) {
  return std::find(kIntegers.begin(), kIntegers.end(), type) != kIntegers.end();
}

bool is_count(std::string_view type) { return is_integer(type) && type != "bool"; }

bool is_real(std::string_view type) { return type == "float" || type == "double"; }

}  // namespace attn_diag::repair

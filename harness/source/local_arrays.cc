// Local arrays of device code that are declared without a value: instrumented builds tell the checker.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "harness/source/pass.h"

namespace attn_diag::source {
namespace {

// Whether the "{" at `open`, in a function's body, is that of a class or enumeration.
bool opens_class(const Syntax& s, std::size_t open) {
  for (std::size_t i = s.statement_begin(open); i < open; ++i) {
    if (s[i].is_any({"struct", "class", "union", "enum"})) return true;
    if (s.is(i, "(") || s.is(i, "=")) return false;
  }
  return false;
}

// Names of the arrays that `[begin, end)` declares, if it is `T a[n], b[n][m]` and nothing more: a type
// of names, scopes and template arguments, and no value, so that it is nothing but a declaration.
std::vector<std::string> arrays_without_value(const Syntax& s, std::size_t begin, std::size_t end) {
  std::size_t i = begin;
  std::size_t words = 0;
  for (; i < end; ++i) {
    if (s[i].is_any({"alignas", "__align__"}) && s.is(i + 1, "(")) {
      i = s.match(i + 1);
    } else if (s.is(i, "<")) {
      const std::size_t close = s.close_angle(i);
      if (close >= end) return {};
      i = close;
    } else if (s[i].is_identifier()) {
      if (s[i].is_any({"static", "extern", "constexpr", "const", "typedef", "using", "return",
                       "delete", "new", "goto", "throw", "case", "__shared__", "co_return",
                       "thread_local", "struct", "asm", "else", "do"}))
        return {};
      if (s.is(i + 1, "[") && !s.is(i - 1, "::")) break;
      ++words;
    } else if (!s.is(i, "::")) {
      return {};
    }
  }
  std::vector<std::string> names;
  if (words == 0) return {};
  for (; i < end; ++i) {
    if (!s[i].is_identifier() || !s.is(i + 1, "[")) return {};
    names.emplace_back(s[i].text);
    for (++i; i < end && s.is(i, "["); ++i) i = s.match(i);
    if (i < end && !s.is(i, ",")) return {};
  }
  return names;
}

class LocalArrays {
 public:
  explicit LocalArrays(Pass& pass) : x_pass(pass) {}

  void read(const Function& function) { read_block(function.open, function.close); }

 private:
  void read_block(std::size_t open, std::size_t close) {
    const Syntax& s = x_pass.syntax;
    std::size_t begin = open + 1;
    for (std::size_t i = begin; i < close; ++i) {
      if (s[i].kind == TokenKind::kDirective) {
        begin = i + 1;
      } else if (s.is(i, "(") || s.is(i, "[")) {
        i = s.match(i);
      } else if (s.is(i, "{")) {
        if (!opens_class(s, i)) read_block(i, s.match(i));
        i = s.match(i);
        begin = i + 1;
      } else if (s.is(i, ";")) {
        declare(begin, i);
        begin = i + 1;
      }
    }
  }

  void declare(std::size_t begin, std::size_t end) {
    if (begin == end || !x_pass.is_open(begin)) return;
    std::string calls;
    for (const std::string& name : arrays_without_value(x_pass.syntax, begin, end))
      calls += fmt::format(" ::attn_diag::host::declared_without_value({}, \"{}\");", name, name);
    if (!calls.empty()) x_pass.edits.insert(x_pass.syntax[end].end, calls);
  }

  Pass& x_pass;
};

}  // namespace

void translate_local_arrays(Pass& pass) {
  for (const Function& function : pass.syntax.functions()) {
    if (!function.is_device) continue;
    bool is_constant = false;  // may be evaluated by the compiler, which cannot call the checker
    for (std::size_t i = function.begin; i < function.open; ++i)
      is_constant |= pass.syntax.is(i, "constexpr") || pass.syntax.is(i, "consteval");
    if (!is_constant) LocalArrays(pass).read(function);
  }
}

}  // namespace attn_diag::source

// Local arrays of device code that are declared without a value: instrumented builds tell the checker.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "harness/toolchain/source/pass.h"

namespace attn_diag::source {
namespace {

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

void declare(Pass& pass, const Statement& statement) {
  if (statement.begin == statement.end || !pass.is_open(statement.begin)) return;
  std::string calls;
  for (const std::string& name : arrays_without_value(pass.syntax, statement.begin, statement.end))
    calls += fmt::format(" ::attn_diag::host::declared_without_value({}, \"{}\");", name, name);
  if (!calls.empty()) pass.edits.insert(pass.syntax[statement.end].end, calls);
}

}  // namespace

void translate_local_arrays(Pass& pass) {
  for (const Function& function : pass.syntax.functions()) {
    if (!function.is_device) continue;
    bool is_constant = false;  // may be evaluated by the compiler, which cannot call the checker
    for (std::size_t i = function.begin; i < function.open; ++i)
      is_constant |= pass.syntax.is(i, "constexpr") || pass.syntax.is(i, "consteval");
    if (is_constant) continue;
    for (const Statement& statement : pass.syntax.statements(function)) declare(pass, statement);
  }
}

}  // namespace attn_diag::source

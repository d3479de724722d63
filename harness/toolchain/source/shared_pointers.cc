// Pointers into dynamic shared memory: instrumented builds tell the checker what the source calls them.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/toolchain/source/pass.h"

namespace attn_diag::source {
namespace {

// Follows `T* p = <an expression with a name that is known>;` through a function's body.
class SharedPointers {
 public:
  SharedPointers(Pass& pass, std::vector<std::string> names)
      : x_pass(pass), x_names(std::move(names)) {}

  void read(const Function& function) {
    for (const Statement& statement : x_pass.syntax.statements(function))
      declare(statement.begin, statement.end);
  }

 private:
  // The "*" of the first declarator of `[begin, end)`, if that is a declaration of pointers; or end.
  std::size_t first_declarator(std::size_t begin, std::size_t end) const {
    const Syntax& s = x_pass.syntax;
    std::size_t words = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (s.is(i, "*")) return words > 0 ? i : end;
      if (s.is(i, "<")) {
        const std::size_t close = s.close_angle(i);
        if (close >= end) return end;
        i = close;
      } else if (s[i].is_identifier()) {
        if (s[i].is_any({"return", "typedef", "using", "delete", "new", "throw", "goto", "case",
                         "else", "do", "static", "extern"}))
          return end;
        words += s[i].is_any({"const", "volatile"}) ? 0 : 1;
      } else if (!s.is(i, "::")) {
        return end;
      }
    }
    return end;
  }

  void declare(std::size_t begin, std::size_t end) {
    const Syntax& s = x_pass.syntax;
    if (begin == end || !x_pass.is_open(begin)) return;
    std::string calls;
    for (std::size_t i = first_declarator(begin, end); i < end;) {
      if (!s.is(i, "*")) break;
      for (++i; i < end && s[i].is_any({"const", "volatile", "__restrict__", "__restrict"});) ++i;
      if (i + 1 >= end || !s[i].is_identifier() || !s.is(i + 1, "=")) break;
      const std::string name(s[i].text);
      bool known = false;
      for (i += 2; i < end && !s.is(i, ","); ++i) {
        std::size_t last = i;
        if (s.is(i, "(") || s.is(i, "[") || s.is(i, "{")) last = s.match(i);
        if (s.is(i, "<") && s.close_angle(i) < end) last = s.close_angle(i);
        for (; i <= last; ++i) known = known || is_known(i);
        i = last;
      }
      ++i;  // the comma
      if (!known) continue;
      if (std::find(x_names.begin(), x_names.end(), name) == x_names.end()) x_names.push_back(name);
      calls += fmt::format(" ::attn_diag::host::named_shared(\"{}\", {});", name, name);
    }
    if (!calls.empty()) x_pass.edits.insert(s[end].end, calls);
  }

  bool is_known(std::size_t i) const {
    const Syntax& s = x_pass.syntax;
    return s[i].is_identifier() && !s.is(i - 1, ".") && !s.is(i - 1, "->") &&
           std::find(x_names.begin(), x_names.end(), s[i].text) != x_names.end();
  }

  Pass& x_pass;
  std::vector<std::string> x_names;
};

}  // namespace

void name_shared_pointers(Pass& pass, const Function& function, std::vector<std::string> names) {
  SharedPointers(pass, std::move(names)).read(function);
}

}  // namespace attn_diag::source

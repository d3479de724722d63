// kernel<T><<<grid, block, shared, stream>>>(arguments) becomes
//   ::attn_diag::host::TranslatedLaunch("kernel<T>", "x.cu", 12, <call>, <find>)
//       .with(grid, block, shared, stream)(arguments)
// where <call> is a generic lambda that calls the kernel and <find> one that names it, for what its
// name alone says (attn_diag_host/translated_launch.h).
#include <fmt/format.h>

#include "harness/toolchain/source/pass.h"

namespace attn_diag::source {
namespace {

// The first token of the callee that ends before `end`; `end` if there is none.
std::size_t callee_begin(const Syntax& s, std::size_t end) {
  std::size_t begin = end;
  std::size_t i = end;  // the component ends before it
  while (i > 0) {
    --i;
    if (s.is(i, ">")) {
      i = s.open_angle(i);
      if (i == s.size() || i == 0) return end;
      --i;
      if (!s[i].is_identifier()) return end;
    } else if (s.is(i, "]") || s.is(i, ")")) {
      const bool call = s.is(i, ")");
      const std::size_t end_of_group = i;
      i = s.match(i);
      const bool condition = i > 0 && call &&
                             (s.is(i - 1, "if") || s.is(i - 1, "while") || s.is(i - 1, "for") ||
                              s.is(i - 1, "switch"));
      if (condition) return end_of_group + 1 == end ? end : begin;
      // Behind a name: a subscript or a call of it. Else a callee in parentheses.
      if (i > 0 &&
          (s[i - 1].is_identifier() || s.is(i - 1, ">") || s.is(i - 1, "]") || s.is(i - 1, ")")) &&
          !(call && (s.is(i - 1, "return") || s.is(i - 1, "else")))) {
        begin = i;
        continue;
      }
      if (!call) return end;
    } else if (!s[i].is_identifier()) {
      return begin;
    }
    begin = i;
    if (i > 0 && s.is(i - 1, "template")) begin = --i;
    if (i == 0) return begin;
    if (s.is(i - 1, "::")) {
      begin = --i;
      const bool qualified = i > 0 && (s.is(i - 1, ">") || s[i - 1].is_identifier()) &&
                             !s.is(i - 1, "return") && !s.is(i - 1, "else") && !s.is(i - 1, "do");
      if (!qualified) return begin;
    } else if (s.is(i - 1, ".") || s.is(i - 1, "->")) {
      begin = --i;
    } else {
      return begin;
    }
  }
  return begin;
}

// The first of the three ">" that end the configuration from `open`; size() if there are none.
std::size_t configuration_end(const Syntax& s, std::size_t open) {
  std::size_t unmatched = 0;  // "<" that may have opened template arguments
  for (std::size_t i = open + 1; i < s.size();) {
    if (s.is(i, "(") || s.is(i, "[") || s.is(i, "{")) {
      i = s.match(i) + 1;
      continue;
    }
    if (s.is(i, ")") || s.is(i, "]") || s.is(i, "}") || s.is(i, ";")) break;
    if (s.is(i, "<")) ++unmatched;
    if (!s.is(i, ">")) {
      ++i;
      continue;
    }
    std::size_t run = 1;
    while (s.is(i + run, ">") && s[i + run].begin == s[i + run - 1].end) ++run;
    const bool ends = run >= 3 && s.is(i + run, "(") && !(run == 3 && unmatched >= 3);
    if (ends) return i + run - 3;
    unmatched -= std::min(unmatched, run);
    i += run;
  }
  return s.size();
}

std::size_t count_arguments(const Syntax& s, std::size_t begin, std::size_t end) {
  std::size_t count = begin < end ? 1 : 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (s.is(i, "(") || s.is(i, "[") || s.is(i, "{")) {
      i = s.match(i);
    } else if (s.is(i, "<") && i > begin && s[i - 1].is_identifier()) {
      const std::size_t close = s.close_angle(i);
      if (close < end) i = close;
    } else if (s.is(i, ",")) {
      ++count;
    }
  }
  return count;
}

// Whether kernel<...> leaves template parameters to deduction or to defaults: then its name alone may denote
// another kernel than a call does.
bool leaves_parameters(const Syntax& s, std::size_t open) {
  if (!s.is(open - 1, ">")) return false;
  const std::size_t angle = s.open_angle(open - 1);
  const std::size_t given = count_arguments(s, angle + 1, open - 1);
  for (const Function& function : s.functions()) {
    if (!function.is_kernel || !s.is(function.name, s[angle - 1].text)) continue;
    std::size_t parameters = 0;
    bool pack = false;
    for (std::size_t i = function.begin; s.is(i, "template") && s.is(i + 1, "<");) {
      const std::size_t close = s.close_angle(i + 1);
      if (close == s.size()) break;
      parameters = count_arguments(s, i + 2, close);
      for (std::size_t j = i; j < close; ++j) pack |= s.is(j, "...");
      i = close + 1;
    }
    if (pack || parameters > given) return true;
  }
  return false;
}

void translate_launch(Pass& pass, std::size_t open) {
  const Syntax& s = pass.syntax;
  const std::size_t begin = callee_begin(s, open);
  if (begin == open) {
    pass.error(open, "'<<<' without a kernel before it: expected kernel<<<grid, block>>>(...)");
    return;
  }
  const std::size_t close = configuration_end(s, open);
  if (close == s.size()) {
    pass.error(open, fmt::format("the launch of '{}' has no '>>>(' that ends its configuration",
                                 pass.source(begin, open)));
    return;
  }
  const std::size_t given = count_arguments(s, open + 1, close);
  if (given < 2 || given > 4) {
    pass.error(open,
               fmt::format("the launch of '{}' has {} values between <<< and >>>: expected grid, "
                           "block and, if need be, bytes of dynamic shared memory and stream",
                           pass.source(begin, open), given));
    return;
  }
  const std::string callee = pass.source(begin, open);
  // A launch is an expression of its own, so that its callee may be wrapped from both sides.
  pass.edits.insert(s[begin].begin, fmt::format("::attn_diag::host::TranslatedLaunch({}, {}, "
                                                "[&](auto&... attn_diag_arguments) -> void {{ ",
                                                quote(callee), pass.place(open)));
  pass.replace(
      open, open + 1,
      fmt::format("(attn_diag_arguments...); }}, [&](auto attn_diag_tag) -> "
                  "decltype(::attn_diag::host::plain_kernel(attn_diag_tag, {0})) {{ return "
                  "::attn_diag::host::plain_kernel(attn_diag_tag, {0}); }}).{1}(",
                  callee, leaves_parameters(s, open) ? "with_deduced" : "with"));
  pass.replace(close, close + 3, ")");
  pass.item(ItemKind::kLaunch, begin, pass.source(begin, close + 3));
}

}  // namespace

void translate_launches(Pass& pass) {
  for (std::size_t i = 0; i < pass.syntax.size(); ++i)
    if (pass.syntax.is(i, "<<<") && pass.is_open(i)) translate_launch(pass, i);
}

}  // namespace attn_diag::source

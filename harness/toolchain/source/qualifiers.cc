// CUDA's qualifiers, and what is left of them for a host compiler.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/toolchain/source/pass.h"

namespace attn_diag::source {
namespace {

// These say where something lives, which is one place here.
constexpr std::array<std::string_view, 6> kPlaces = {
    "__global__", "__device__", "__host__", "__constant__", "__managed__", "__grid_constant__"};

// `static __device__ __forceinline__ inline`: whether the declaration around i says inline itself.
bool says_inline(const Syntax& s, std::size_t i) {
  for (std::size_t j = s.statement_begin(i); j < s.size() && !s.is(j, "{") && !s.is(j, ";"); ++j) {
    if (s.is(j, "inline") || s.is(j, "__inline__") || s.is(j, "__inline")) return true;
    if (s.is(j, "__forceinline__") && j < i) return true;
    if (s.is(j, "(")) j = s.match(j);
  }
  return false;
}

void translate_launch_bounds(Pass& pass, std::size_t i) {
  const Syntax& s = pass.syntax;
  if (!s.is(i + 1, "(")) {
    pass.error(i, "'__launch_bounds__' without its values: expected __launch_bounds__(threads)");
    return;
  }
  const std::size_t end = s.match(i + 1);
  // The body of the kernel starts with the check.
  const Function* kernel = s.function_around(i);
  if (kernel != nullptr && i < kernel->open) {
    std::size_t first_end = i + 2;
    while (first_end < end && !s.is(first_end, ",")) {
      const std::size_t angle = s.is(first_end, "<") ? s.close_angle(first_end) : s.size();
      if (s.is(first_end, "(") || s.is(first_end, "{"))
        first_end = s.match(first_end);
      else if (angle < end)
        first_end = angle;
      ++first_end;
    }
    pass.edits.insert(s[kernel->open].end,
                      fmt::format(" ::attn_diag::host::check_launch_bounds({}, {});",
                                  pass.source(i + 2, first_end), pass.place(i)));
  }
  pass.item(ItemKind::kLaunchBounds, i, pass.source(i, end + 1));
  pass.remove(i, end + 1);
}

}  // namespace

void translate_qualifiers(Pass& pass) {
  const Syntax& s = pass.syntax;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const Token& token = s[i];
    if (!token.is_identifier() || !pass.is_open(i) || !token.text.starts_with("__")) continue;
    if (std::find(kPlaces.begin(), kPlaces.end(), token.text) != kPlaces.end()) {
      pass.remove(i, i + 1);
    } else if (token.is("__forceinline__")) {
      pass.replace(i, i + 1,
                   says_inline(s, i) ? "__attribute__((always_inline))"
                                     : "inline __attribute__((always_inline))");
    } else if (token.is("__noinline__") && !(i >= 2 && s.is(i - 1, "(") && s.is(i - 2, "("))) {
      pass.replace(i, i + 1, "__attribute__((noinline))");
    } else if (token.is("__align__") && s.is(i + 1, "(")) {
      pass.replace(i, i + 1, "__attribute__((aligned");
      pass.edits.insert(s[s.match(i + 1)].end, "))");
    } else if (token.is("__launch_bounds__")) {
      translate_launch_bounds(pass, i);
    } else if (token.is("__maxnreg__") && s.is(i + 1, "(")) {
      pass.remove(i, s.match(i + 1) + 1);
    } else if (token.is("__cluster_dims__")) {
      pass.error(i,
                 "unsupported: __cluster_dims__ (thread block clusters): the host executor runs "
                 "every block alone; build with --backend cuda, or without clusters");
    }
  }
}

}  // namespace attn_diag::source

// cudaLaunchCooperativeKernel((void*)kernel<64>, ...) loses the cast, so that the call sees the type of the
// kernel, and with it those of the arguments that it is given by pointers.
#include "harness/toolchain/source/pass.h"

namespace attn_diag::source {
namespace {

// Behind "void *" or "const void *" or "void const *" from i on; i if it is none.
std::size_t skip_void_pointer(const Syntax& s, std::size_t i) {
  std::size_t at = i;
  while (s.is(at, "const") || s.is(at, "void")) ++at;
  return at > i && s.is(at, "*") ? at + 1 : i;
}

}  // namespace

void translate_kernel_casts(Pass& pass) {
  const Syntax& s = pass.syntax;
  for (std::size_t i = 0; i + 2 < s.size(); ++i) {
    if (!s.is(i, "cudaLaunchKernel") && !s.is(i, "cudaLaunchCooperativeKernel")) continue;
    if (!pass.is_open(i) || !s.is(i + 1, "(")) continue;
    const std::size_t first = i + 2;
    if (s.is(first, "(")) {
      const std::size_t end = skip_void_pointer(s, first + 1);
      if (end > first + 1 && s.is(end, ")")) pass.remove(first, end + 1);
    } else if (s.is(first, "reinterpret_cast") || s.is(first, "static_cast")) {
      const std::size_t end = skip_void_pointer(s, first + 2);
      if (end > first + 2 && s.is(end, ">") && s.is(end + 1, "(")) pass.remove(first, end + 1);
    }
  }
}

}  // namespace attn_diag::source

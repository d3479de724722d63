// What ends a kernel from inside: __trap and a failed assert.
#pragma once

namespace attn_diag::host {

[[noreturn]] void trap(const char* file, int line);

}  // namespace attn_diag::host

[[noreturn]] inline void __trap(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  attn_diag::host::trap(file, line);
}

// Clocks, and threads that wait for time to pass.
#pragma once

#include <time.h>

#include "attn_diag_host/give_way.h"

namespace attn_diag::host {
long long nanoseconds();  // of a clock that only goes forward
}  // namespace attn_diag::host

// clock() is the C library's.
inline long long clock64() { return attn_diag::host::nanoseconds(); }
inline void __nanosleep(unsigned int, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  attn_diag::host::give_way(file, line);
}

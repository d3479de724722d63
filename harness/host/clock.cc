#include <chrono>

#include "attn_diag_host/time.h"

long long attn_diag::host::nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

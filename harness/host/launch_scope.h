// The scope in force on the calling thread.
#pragma once

#include "attn_diag/harness/host/executor.h"

namespace attn_diag::host {

struct ScopeState {
  LaunchOptions options;
  LaunchReport report;
};

ScopeState* current_scope();  // null: none

}  // namespace attn_diag::host

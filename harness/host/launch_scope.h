// The scope in force on the calling thread.
#pragma once

#include <memory>

#include "attn_diag/harness/host/executor.h"
#include "harness/host/check/checker.h"

namespace attn_diag::host {

struct ScopeState {
  LaunchOptions options;
  LaunchReport report;
  std::unique_ptr<Checker> checker;  // null: launches are not checked
};

ScopeState* current_scope();  // null: none

}  // namespace attn_diag::host

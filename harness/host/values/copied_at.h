// Which line of a watched kernel a copy belongs to that the executor makes.
#pragma once

#include <cstdint>

#include "attn_diag/harness/host/value_callouts.h"

namespace attn_diag::host {

struct CopiedAt {
  value_callouts::Site* site = nullptr;   // null: not known, or host code
  std::uint32_t where = 0;                // as in ValueNode
  value_callouts::Site* store = nullptr;  // where it is stored; null: at `site`
};

}  // namespace attn_diag::host

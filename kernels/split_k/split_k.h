// Between split_k's adapter and its translation units, one per element type.
#pragma once

#include "attn_diag/kernels/adapter.h"
#include "split_k/workspace.h"

namespace attn_diag {

template <class Element>
Status run_split_k(const RunRequest& request);

}  // namespace attn_diag

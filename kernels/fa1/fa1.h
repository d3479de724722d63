// Between fa1's adapter and its translation units, one per element type.
#pragma once

#include "attn_diag/kernels/adapter.h"

namespace attn_diag {

template <class Element>
Status run_fa1(const RunRequest& request);

}  // namespace attn_diag

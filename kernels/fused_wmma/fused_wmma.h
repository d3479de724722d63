// Between the adapter of fused_wmma and its translation units, one per element type.
#pragma once

#include "attn_diag/kernels/adapter.h"

namespace attn_diag {

template <class Element>
Status run_fused_wmma(const RunRequest& request);

}  // namespace attn_diag

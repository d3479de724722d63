// What was asked for a kernel by cudaFuncSetAttribute.
#pragma once

#include <cstddef>

namespace attn_diag::host {

std::size_t dynamic_shared_limit(const void* kernel);  // bytes

}  // namespace attn_diag::host

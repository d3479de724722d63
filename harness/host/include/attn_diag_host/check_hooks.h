// What instrumented code tells the checker that the compiler's call-outs do not.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// A local array of the calling thread has just been declared and holds nothing yet. Called by kernels'
// code, after the declaration; without a checker it does nothing.
void local_array(const void* array, std::size_t bytes, const char* name, const char* file,
                 int line);

}  // namespace attn_diag::host

// Kernels whose source makes a load on one way only, which an optimiser could make on every way.
#pragma once

#include <cuda_runtime.h>

namespace attn_diag::host::checked {

enum class Untaken {
  kLocalLoop,     // the first iteration of a loop stores, the others load and store
  kSharedLoop,    // the same of a shared array
  kOneThread,     // of all threads one adds to an element of a shared array, in a loop
  kVariableLoop,  // and one to a variable of the device, another loads it behind a barrier
  kLocalChoice,   // an element of the one array or of the other, which nobody has set
  kSharedChoice,  // the same of shared arrays
};
constexpr Untaken kAllUntaken[] = {Untaken::kLocalLoop,   Untaken::kSharedLoop,
                                   Untaken::kOneThread,   Untaken::kVariableLoop,
                                   Untaken::kLocalChoice, Untaken::kSharedChoice};
// `taken`: it is wrong, as the load is made that must not be.
cudaError_t loads_untaken(Untaken what, int* out, int steps, bool taken);

// Reads shared memory that nobody has written, at no line.
cudaError_t load_without_line(int* out);

}  // namespace attn_diag::host::checked

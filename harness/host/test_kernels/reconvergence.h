#pragma once

#include <cuda_runtime.h>

enum class Parting { kIf, kElse, kBreak, kContinue, kNestedLoops, kCall, kSwitch, kReturn };

// Built for lockstep at three levels of optimisation.
#define ATTN_DIAG_RECONVERGENCE(name)                  \
  namespace name {                                     \
  cudaError_t reconverge(Parting parting, int* out);   \
  cudaError_t broadcast(int* out);                     \
  cudaError_t lock_of_lanes(unsigned* lock, int* out); \
  }
ATTN_DIAG_RECONVERGENCE(lockstep_O1)
ATTN_DIAG_RECONVERGENCE(lockstep_O2)
ATTN_DIAG_RECONVERGENCE(lockstep_O3)
#undef ATTN_DIAG_RECONVERGENCE

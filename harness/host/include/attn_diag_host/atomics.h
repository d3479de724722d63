// Atomic functions. They live in the executor, so that the lockstep build does not split them.
#pragma once

#include "attn_diag_host/qualifiers.h"

#define ATTN_DIAG_HOST_ATOMIC(name, T) T name(T* address, T value)
#define ATTN_DIAG_HOST_ATOMIC_INTEGER(T) \
  ATTN_DIAG_HOST_ATOMIC(atomicAdd, T);   \
  ATTN_DIAG_HOST_ATOMIC(atomicMin, T);   \
  ATTN_DIAG_HOST_ATOMIC(atomicMax, T);   \
  ATTN_DIAG_HOST_ATOMIC(atomicExch, T);  \
  ATTN_DIAG_HOST_ATOMIC(atomicAnd, T);   \
  ATTN_DIAG_HOST_ATOMIC(atomicOr, T);    \
  ATTN_DIAG_HOST_ATOMIC(atomicXor, T);   \
  T atomicCAS(T* address, T compare, T value)
ATTN_DIAG_HOST_ATOMIC_INTEGER(int);
ATTN_DIAG_HOST_ATOMIC_INTEGER(unsigned int);
ATTN_DIAG_HOST_ATOMIC_INTEGER(unsigned long long);
#undef ATTN_DIAG_HOST_ATOMIC_INTEGER
ATTN_DIAG_HOST_ATOMIC(atomicSub, int);
ATTN_DIAG_HOST_ATOMIC(atomicSub, unsigned int);
ATTN_DIAG_HOST_ATOMIC(atomicInc, unsigned int);
ATTN_DIAG_HOST_ATOMIC(atomicDec, unsigned int);
ATTN_DIAG_HOST_ATOMIC(atomicMin, long long);
ATTN_DIAG_HOST_ATOMIC(atomicMax, long long);
ATTN_DIAG_HOST_ATOMIC(atomicAdd, float);
ATTN_DIAG_HOST_ATOMIC(atomicAdd, double);
ATTN_DIAG_HOST_ATOMIC(atomicExch, float);
#undef ATTN_DIAG_HOST_ATOMIC
unsigned short atomicCAS(unsigned short* address, unsigned short compare, unsigned short value);

// Atomic functions. They live in the executor, so that the lockstep build does not split them.
#pragma once

#include <type_traits>

#include "attn_diag_host/vector_types.h"

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
// As on sm_90, each part is added atomically, the whole need not be.
float2 atomicAdd(float2* address, float2 value);
float4 atomicAdd(float4* address, float4 value);

// The scopes: all are as wide as the device.
#define ATTN_DIAG_HOST_SCOPED(name)                                   \
  template <class T>                                                  \
  inline T name##_block(T* address, std::type_identity_t<T> value) {  \
    return name(address, value);                                      \
  }                                                                   \
  template <class T>                                                  \
  inline T name##_system(T* address, std::type_identity_t<T> value) { \
    return name(address, value);                                      \
  }
ATTN_DIAG_HOST_SCOPED(atomicAdd)
ATTN_DIAG_HOST_SCOPED(atomicSub)
ATTN_DIAG_HOST_SCOPED(atomicMin)
ATTN_DIAG_HOST_SCOPED(atomicMax)
ATTN_DIAG_HOST_SCOPED(atomicExch)
ATTN_DIAG_HOST_SCOPED(atomicInc)
ATTN_DIAG_HOST_SCOPED(atomicDec)
ATTN_DIAG_HOST_SCOPED(atomicAnd)
ATTN_DIAG_HOST_SCOPED(atomicOr)
ATTN_DIAG_HOST_SCOPED(atomicXor)
#undef ATTN_DIAG_HOST_SCOPED
template <class T>
inline T atomicCAS_block(T* address, std::type_identity_t<T> compare,
                         std::type_identity_t<T> value) {
  return atomicCAS(address, compare, value);
}
template <class T>
inline T atomicCAS_system(T* address, std::type_identity_t<T> compare,
                          std::type_identity_t<T> value) {
  return atomicCAS(address, compare, value);
}

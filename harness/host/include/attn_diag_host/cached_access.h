// Loads and stores with a cache hint, of no effect here.
#pragma once

#include <type_traits>

#include "attn_diag_host/qualifiers.h"

#define ATTN_DIAG_HOST_LOAD(name)   \
  template <class T>                \
  inline T name(const T* address) { \
    return *address;                \
  }
ATTN_DIAG_HOST_LOAD(__ldg)
ATTN_DIAG_HOST_LOAD(__ldca)
ATTN_DIAG_HOST_LOAD(__ldcg)
ATTN_DIAG_HOST_LOAD(__ldcs)
ATTN_DIAG_HOST_LOAD(__ldlu)
#undef ATTN_DIAG_HOST_LOAD
// Reads memory anew at every call, also in a loop.
template <class T>
inline T __ldcv(const T* address) {
  asm volatile("" : : : "memory");
  return *address;
}

// The value converts to what is stored, as in CUDA's overloads.
#define ATTN_DIAG_HOST_STORE(name)                              \
  template <class T>                                            \
  inline void name(T* address, std::type_identity_t<T> value) { \
    *address = value;                                           \
  }
ATTN_DIAG_HOST_STORE(__stwb)
ATTN_DIAG_HOST_STORE(__stcg)
ATTN_DIAG_HOST_STORE(__stcs)
ATTN_DIAG_HOST_STORE(__stwt)
#undef ATTN_DIAG_HOST_STORE

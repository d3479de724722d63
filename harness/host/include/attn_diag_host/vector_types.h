// CUDA's built-in vector types, with CUDA's sizes and alignments, and dim3.
#pragma once

#include "attn_diag_host/qualifiers.h"

// The alignments are those of the CUDA C++ Programming Guide: a vector of 2 or 4 elements is
// aligned to its size, at most 16 bytes; one of 1 or 3 elements as its element.
#define ATTN_DIAG_HOST_VECTOR(name, T)                                          \
  struct name##1 {                                                              \
    T x;                                                                        \
  };                                                                            \
  struct alignas(2 * sizeof(T)) name##2 {                                       \
    T x, y;                                                                     \
  };                                                                            \
  struct name##3 {                                                              \
    T x, y, z;                                                                  \
  };                                                                            \
  struct alignas(sizeof(T) > 4 ? 16 : 4 * sizeof(T)) name##4 {                  \
    T x, y, z, w;                                                               \
  };                                                                            \
  constexpr name##1 make_##name##1(T x) { return {x}; }                         \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                 \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }         \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; } \
  static_assert(sizeof(name##2) == 2 * sizeof(T) && sizeof(name##4) == 4 * sizeof(T))

ATTN_DIAG_HOST_VECTOR(char, signed char);
ATTN_DIAG_HOST_VECTOR(uchar, unsigned char);
ATTN_DIAG_HOST_VECTOR(short, short);
ATTN_DIAG_HOST_VECTOR(ushort, unsigned short);
ATTN_DIAG_HOST_VECTOR(int, int);
ATTN_DIAG_HOST_VECTOR(uint, unsigned int);
ATTN_DIAG_HOST_VECTOR(long, long);
ATTN_DIAG_HOST_VECTOR(ulong, unsigned long);
ATTN_DIAG_HOST_VECTOR(longlong, long long);
ATTN_DIAG_HOST_VECTOR(ulonglong, unsigned long long);
ATTN_DIAG_HOST_VECTOR(float, float);
ATTN_DIAG_HOST_VECTOR(double, double);
#undef ATTN_DIAG_HOST_VECTOR

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
      : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

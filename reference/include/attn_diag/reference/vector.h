// The widest vector of doubles the target has, in the compiler's own vector types: they choose a
// width, the compiler the instructions. For sources of the reference and the comparison, which are all
// compiled for the same target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace attn_diag::reference {

#if defined(__AVX512F__)
inline constexpr int kLanes = 8;
#elif defined(__AVX__)
inline constexpr int kLanes = 4;
#else
inline constexpr int kLanes = 2;
#endif

using Vector __attribute__((vector_size(kLanes * sizeof(double)))) = double;
using IntVector __attribute__((vector_size(kLanes * sizeof(double)))) = std::int64_t;

inline Vector load(const double* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void store(double* to, Vector v) { std::memcpy(to, &v, sizeof v); }
inline Vector broadcast(double x) {
  Vector v;
  for (int lane = 0; lane < kLanes; ++lane) v[lane] = x;
  return v;
}

}  // namespace attn_diag::reference

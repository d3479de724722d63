// CUDA's SIMD intrinsics: two 16-bit or four 8-bit integers in 32 bits.
#pragma once

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// Change(a, b) of each part; T is the type of a part, signed or not. Results keep their low bits.
template <class T, class Change>
constexpr unsigned int each_part(unsigned int a, unsigned int b, Change change) {
  constexpr unsigned kBits = sizeof(T) * 8;
  unsigned int result = 0;
  for (unsigned i = 0; i < 32; i += kBits) {
    const int value =
        change(static_cast<int>(static_cast<T>(a >> i)), static_cast<int>(static_cast<T>(b >> i)));
    result |= (static_cast<unsigned int>(value) & ((1u << kBits) - 1)) << i;
  }
  return result;
}
template <class T>
constexpr int saturated(int x) {
  constexpr bool kSigned = static_cast<T>(-1) < T{0};
  constexpr int kBits = sizeof(T) * 8;
  constexpr int kMost = kSigned ? (1 << (kBits - 1)) - 1 : (1 << kBits) - 1;
  constexpr int kLeast = kSigned ? -kMost - 1 : 0;
  return x < kLeast ? kLeast : x > kMost ? kMost : x;
}
constexpr int distance(int a, int b) { return a > b ? a - b : b - a; }

}  // namespace attn_diag::host

#define ATTN_DIAG_HOST_PACKED(name, S, U, type, result)                            \
  inline unsigned int name(unsigned int left, unsigned int right) {                \
    using Signed = S;                                                              \
    using Unsigned = U;                                                            \
    using Part = type;                                                             \
    static_assert(sizeof(Signed) == sizeof(Unsigned));                             \
    return attn_diag::host::each_part<Part>(left, right, [](int a, int b) -> int { \
      using namespace attn_diag::host; /* NOLINT */                                \
      return result;                                                               \
    });                                                                            \
  }
#define ATTN_DIAG_HOST_PACKED_COMPARE(name, n, S, U, type, symbol)          \
  ATTN_DIAG_HOST_PACKED(__vcmp##name##n, S, U, type, (a symbol b) ? -1 : 0) \
  ATTN_DIAG_HOST_PACKED(__vset##name##n, S, U, type, (a symbol b) ? 1 : 0)
#define ATTN_DIAG_HOST_PACKED_SET(n, S, U)                                       \
  ATTN_DIAG_HOST_PACKED(__vadd##n, S, U, Signed, a + b)                          \
  ATTN_DIAG_HOST_PACKED(__vsub##n, S, U, Signed, a - b)                          \
  ATTN_DIAG_HOST_PACKED(__vaddss##n, S, U, Signed, saturated<Part>(a + b))       \
  ATTN_DIAG_HOST_PACKED(__vaddus##n, S, U, Unsigned, saturated<Part>(a + b))     \
  ATTN_DIAG_HOST_PACKED(__vsubss##n, S, U, Signed, saturated<Part>(a - b))       \
  ATTN_DIAG_HOST_PACKED(__vsubus##n, S, U, Unsigned, saturated<Part>(a - b))     \
  ATTN_DIAG_HOST_PACKED(__vmaxs##n, S, U, Signed, a > b ? a : b)                 \
  ATTN_DIAG_HOST_PACKED(__vmaxu##n, S, U, Unsigned, a > b ? a : b)               \
  ATTN_DIAG_HOST_PACKED(__vmins##n, S, U, Signed, a < b ? a : b)                 \
  ATTN_DIAG_HOST_PACKED(__vminu##n, S, U, Unsigned, a < b ? a : b)               \
  ATTN_DIAG_HOST_PACKED(__vavgs##n, S, U, Signed, (a + b + (a + b >= 0)) >> 1)   \
  ATTN_DIAG_HOST_PACKED(__vavgu##n, S, U, Unsigned, (a + b + 1) >> 1)            \
  ATTN_DIAG_HOST_PACKED(__vhaddu##n, S, U, Unsigned, (a + b) >> 1)               \
  ATTN_DIAG_HOST_PACKED(__vabsdiffs##n, S, U, Signed, distance(a, b))            \
  ATTN_DIAG_HOST_PACKED(__vabsdiffu##n, S, U, Unsigned, distance(a, b))          \
  ATTN_DIAG_HOST_PACKED_COMPARE(eq, n, S, U, Unsigned, ==)                       \
  ATTN_DIAG_HOST_PACKED_COMPARE(ne, n, S, U, Unsigned, !=)                       \
  ATTN_DIAG_HOST_PACKED_COMPARE(ges, n, S, U, Signed, >=)                        \
  ATTN_DIAG_HOST_PACKED_COMPARE(geu, n, S, U, Unsigned, >=)                      \
  ATTN_DIAG_HOST_PACKED_COMPARE(gts, n, S, U, Signed, >)                         \
  ATTN_DIAG_HOST_PACKED_COMPARE(gtu, n, S, U, Unsigned, >)                       \
  ATTN_DIAG_HOST_PACKED_COMPARE(les, n, S, U, Signed, <=)                        \
  ATTN_DIAG_HOST_PACKED_COMPARE(leu, n, S, U, Unsigned, <=)                      \
  ATTN_DIAG_HOST_PACKED_COMPARE(lts, n, S, U, Signed, <)                         \
  ATTN_DIAG_HOST_PACKED_COMPARE(ltu, n, S, U, Unsigned, <)                       \
  inline unsigned int __vneg##n(unsigned int a) { return __vsub##n(0, a); }      \
  inline unsigned int __vnegss##n(unsigned int a) { return __vsubss##n(0, a); }  \
  inline unsigned int __vabs##n(unsigned int a) { return __vabsdiffs##n(a, 0); } \
  inline unsigned int __vabsss##n(unsigned int a) { return __vmaxs##n(a, __vnegss##n(a)); }
ATTN_DIAG_HOST_PACKED_SET(2, std::int16_t, std::uint16_t)
ATTN_DIAG_HOST_PACKED_SET(4, std::int8_t, std::uint8_t)
#undef ATTN_DIAG_HOST_PACKED_SET
#undef ATTN_DIAG_HOST_PACKED_COMPARE
#undef ATTN_DIAG_HOST_PACKED

namespace attn_diag::host {
template <class T>
constexpr unsigned int sum_of_parts(unsigned int x) {
  unsigned int sum = 0;
  for (unsigned i = 0; i < 32; i += sizeof(T) * 8) sum += static_cast<T>(x >> i);
  return sum;
}
}  // namespace attn_diag::host
inline unsigned int __vsads2(unsigned int a, unsigned int b) {
  return attn_diag::host::sum_of_parts<std::uint16_t>(__vabsdiffs2(a, b));
}
inline unsigned int __vsadu2(unsigned int a, unsigned int b) {
  return attn_diag::host::sum_of_parts<std::uint16_t>(__vabsdiffu2(a, b));
}
inline unsigned int __vsads4(unsigned int a, unsigned int b) {
  return attn_diag::host::sum_of_parts<std::uint8_t>(__vabsdiffs4(a, b));
}
inline unsigned int __vsadu4(unsigned int a, unsigned int b) {
  return attn_diag::host::sum_of_parts<std::uint8_t>(__vabsdiffu4(a, b));
}

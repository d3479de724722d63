// Integers: bits, bytes, wide products.
#pragma once

#include "attn_diag_host/vector_types.h"

inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned int __brev(unsigned int x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0F0F0F0Fu) | ((x & 0x0F0F0F0Fu) << 4);
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned int>(x))) << 32 |
         __brev(static_cast<unsigned int>(x >> 32));
}

inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
inline unsigned int __umulhi(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(a) * b) >> 32);
}
namespace attn_diag::host {
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UnsignedInt128;
}  // namespace attn_diag::host
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<attn_diag::host::Int128>(a) * b) >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<attn_diag::host::UnsignedInt128>(a) * b) >>
                                         64);
}
// The product of the low 24 bits.
inline unsigned int __umul24(unsigned int a, unsigned int b) {
  return (a & 0xFFFFFFu) * (b & 0xFFFFFFu);
}
inline int __mul24(int a, int b) {
  const auto extended = [](int x) {
    return static_cast<unsigned int>(static_cast<int>(static_cast<unsigned int>(x) << 8) >> 8);
  };
  return static_cast<int>(extended(a) * extended(b));
}
inline unsigned int __usad(unsigned int a, unsigned int b, unsigned int c) {
  return c + (a > b ? a - b : b - a);
}
inline unsigned int __sad(int a, int b, unsigned int c) {
  return c + (a > b ? static_cast<unsigned int>(a) - static_cast<unsigned int>(b)
                    : static_cast<unsigned int>(b) - static_cast<unsigned int>(a));
}
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
inline int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
inline unsigned int __uhadd(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(a) + b) >> 1);
}
inline unsigned int __urhadd(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}

// Byte i of the result is that of y:x whose number is in nibble i of the selector.
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned int result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<unsigned int>(bytes >> (selector >> (4 * i) & 7u) * 8 & 0xFFu) << 8 * i;
  return result;
}
// Upper (_l) or lower (_r) half of high:low shifted by `shift` modulo 32; _lc, _rc: by at most 32.
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned int>(both << (shift & 31u) >> 32);
}
inline unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned int>(both >> (shift & 31u));
}
inline unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// c plus the products of four bytes, or of two 16-bit parts and the low or high two bytes.
namespace attn_diag::host {
template <class Byte, class Word>
constexpr Word byte_products(Word a, Word b, Word c) {
  auto sum = static_cast<unsigned int>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<unsigned int>(static_cast<Byte>(a >> i) * static_cast<Byte>(b >> i));
  return static_cast<Word>(sum);
}
template <class Short, class Byte, class Word>
constexpr Word short_products(Word a, Word b, Word c, int first) {
  auto sum = static_cast<unsigned int>(c);
  for (int i = 0; i < 2; ++i)
    sum += static_cast<unsigned int>(static_cast<Short>(a >> 16 * i)) *
           static_cast<unsigned int>(static_cast<Byte>(b >> (first + i) * 8));
  return static_cast<Word>(sum);
}
}  // namespace attn_diag::host
inline int __dp4a(int a, int b, int c) {
  return attn_diag::host::byte_products<signed char>(a, b, c);
}
inline unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int c) {
  return attn_diag::host::byte_products<unsigned char>(a, b, c);
}
inline int __dp4a(char4 a, char4 b, int c) {
  return __dp4a(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c);
}
inline unsigned int __dp4a(uchar4 a, uchar4 b, unsigned int c) {
  return __dp4a(__builtin_bit_cast(unsigned int, a), __builtin_bit_cast(unsigned int, b), c);
}
inline int __dp2a_lo(int a, int b, int c) {
  return attn_diag::host::short_products<short, signed char>(a, b, c, 0);
}
inline int __dp2a_hi(int a, int b, int c) {
  return attn_diag::host::short_products<short, signed char>(a, b, c, 2);
}
inline unsigned int __dp2a_lo(unsigned int a, unsigned int b, unsigned int c) {
  return attn_diag::host::short_products<unsigned short, unsigned char>(a, b, c, 0);
}
inline unsigned int __dp2a_hi(unsigned int a, unsigned int b, unsigned int c) {
  return attn_diag::host::short_products<unsigned short, unsigned char>(a, b, c, 2);
}

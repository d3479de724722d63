// What went wrong, in words.
#pragma once

#include <cstdarg>
#include <cstdio>

namespace attn_diag {

// Throws an Error, of the C++ library or made from one, as printf would write it.
template <class Error>
[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void fail(const char* format,
                                                                            ...) {
  char words[512];
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(words, sizeof words, format, values);
  va_end(values);
  throw Error(words);
}

}  // namespace attn_diag

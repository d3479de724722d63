// Catch2 for our own tests, 2.13 and 3.x alike.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

namespace attn_diag {

inline auto contains(const std::string& text) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Contains(text);
#endif
}

}  // namespace attn_diag

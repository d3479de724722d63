// TORCH_CHECK and its family: an exception with the words that follow the condition.
#pragma once

#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>

namespace c10 {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class IndexError : public Error {
 public:
  using Error::Error;
};

namespace attn_diag {
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream text;
  static_cast<void>((text << ... << parts));
  return text.str();
}
// `said`: the words after the condition; empty: there are none.
[[noreturn]] inline void fail(const char* condition, const char* file, int line,
                              const std::string& said) {
  throw Error(message(said.empty() ? message("Expected ", condition, " to be true") : said, " (",
                      file, ":", line, ")"));
}
}  // namespace attn_diag

}  // namespace c10

namespace at {
using c10::Error;
}

#define TORCH_CHECK(condition, ...)                                   \
  do {                                                                \
    if (!(condition))                                                 \
      ::c10::attn_diag::fail(#condition, __FILE__, __LINE__,          \
                             ::c10::attn_diag::message(__VA_ARGS__)); \
  } while (false)
#define TORCH_INTERNAL_ASSERT(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_VALUE(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_TYPE(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_INDEX(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), #a " is ", (a), ", not " #b ", ", (b))
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b), #a " is " #b ", ", (b))
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b), #a " is ", (a), ", not below " #b ", ", (b))
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b), #a " is ", (a), ", above " #b ", ", (b))
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b), #a " is ", (a), ", not above " #b ", ", (b))
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b), #a " is ", (a), ", below " #b ", ", (b))
#define AT_ASSERT(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ASSERTM(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ERROR(...) \
  ::c10::attn_diag::fail("", __FILE__, __LINE__, ::c10::attn_diag::message(__VA_ARGS__))
#define TORCH_WARN(...)                                                                      \
  static_cast<void>(::std::fprintf(stderr, "warning: %s (%s:%d)\n",                          \
                                   ::c10::attn_diag::message(__VA_ARGS__).c_str(), __FILE__, \
                                   __LINE__))
#define TORCH_WARN_ONCE(...) TORCH_WARN(__VA_ARGS__)

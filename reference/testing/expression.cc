#include "reference/testing/expression.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace attn_diag::reference::testing {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  double parse() {
    const double value = sum();
    skip_spaces();
    if (at_ != text_.size()) fail("nothing or an operator");
    return value;
  }

 private:
  double sum() {
    double value = product();
    for (;;) {
      if (take('+'))
        value += product();
      else if (take('-'))
        value -= product();
      else
        return value;
    }
  }

  double product() {
    double value = factor();
    for (;;) {
      if (take('*'))
        value *= factor();
      else if (take('/'))
        value /= factor();
      else
        return value;
    }
  }

  double factor() {
    if (take('-')) return -factor();
    if (take('(')) return until_parenthesis();
    if (take_word("inf")) return std::numeric_limits<double>::infinity();
    if (take_word("exp")) return std::exp(argument());
    if (take_word("ln")) return std::log(argument());
    return number();
  }

  double argument() {
    if (!take('(')) fail("'(' after a function");
    return until_parenthesis();
  }

  double until_parenthesis() {
    const double value = sum();
    if (!take(')')) fail("')'");
    return value;
  }

  double number() {
    skip_spaces();
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || *begin == '-') fail("a number, exp, ln, inf or '('");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    throw std::invalid_argument("expression '" + std::string(text_) + "': expected " + expected +
                                " at character " + std::to_string(at_ + 1));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

double evaluate(std::string_view expression) { return Parser(expression).parse(); }

}  // namespace attn_diag::reference::testing

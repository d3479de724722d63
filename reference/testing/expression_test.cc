#include "reference/testing/expression.h"

#include <cmath>
#include <stdexcept>

#include "reference/testing/catch2_test.h"

namespace attn_diag::reference::testing {
namespace {

TEST_CASE("expressions have their usual value") {
  CHECK(evaluate("3") == 3);
  CHECK(evaluate(" 2.5e1 ") == 25);
  CHECK(evaluate("1/3") == 1.0 / 3);
  CHECK(evaluate("1 - 2 - 3") == -4);
  CHECK(evaluate("8/4/2") == 1);
  CHECK(evaluate("2 + 3*4") == 14);
  CHECK(evaluate("(2 + 3)*4") == 20);
  CHECK(evaluate("-2*-3") == 6);
  CHECK(evaluate("-(1 + 1)") == -2);
  CHECK(evaluate("exp(-1)") == std::exp(-1.0));
  CHECK(evaluate("2 + ln(1 + exp(-2))") == 2 + std::log(1 + std::exp(-2.0)));
  CHECK(evaluate("-inf") == -INFINITY);
}

TEST_CASE("what is not an expression is refused, with the place") {
  for (const char* const text :
       {"", "1 +", "(1", "1)", "two", "exp 1", "exp(1", "1 2", "--", "1,5"})
    CHECK_THROWS_AS(evaluate(text), std::invalid_argument);
  try {
    evaluate("1 + x");
    FAIL("accepted");
  } catch (const std::invalid_argument& e) {
    CHECK(std::string(e.what()) ==
          "expression '1 + x': expected a number, exp, ln, inf or '(' at character 5");
  }
}

}  // namespace
}  // namespace attn_diag::reference::testing

#include "harness/base/printable.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {

TEST_CASE("control characters of others are spelled out, and what reads as text stays") {
  CHECK(printable("AGREES \xc3\xa4\n\tx", false) == "AGREES \xc3\xa4\n\tx");
  CHECK(printable("a\x1b]0;title\a\x7f", false) == "a\\x1b]0;title\\x07\\x7f");
  CHECK(printable("\xc2\x9b"
                  "2J \xe2\x80\xae",
                  false) == "\\u009b2J \\u202e");
  CHECK(printable("\xff \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82", false) ==
        "\\xff \\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xe2\\x82");
  CHECK(printable(std::string_view("\0", 1), false) == "\\x00");
}

TEST_CASE("colours of reports pass where there are colours, and no other sequence does") {
  CHECK(printable("\x1b[32mAGREES\x1b[0m", true) == "\x1b[32mAGREES\x1b[0m");
  CHECK(printable("\x1b[32mAGREES\x1b[0m", false) == "\\x1b[32mAGREES\\x1b[0m");
  CHECK(printable("\x1b[8mhidden\x1b[2J", true) == "\\x1b[8mhidden\\x1b[2J");
}

TEST_CASE("a name is one line") {
  CHECK(one_line("q\nAGREES\t\r") == "q\\nAGREES\\t\\r");
  CHECK(one_line("caf\xc3\xa9 \\n") == "caf\xc3\xa9 \\n");
}

}  // namespace attn_diag

#include "harness/report/junit.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

TEST_CASE("every kind of verdict is counted and has its element") {
  std::vector<JunitCase> cases(4);
  for (std::size_t i = 0; i < 4; ++i) cases[i].kind = static_cast<JunitCase::Kind>(i);
  const std::string xml = junit_xml("suite", cases);
  CHECK_THAT(xml, contains(R"(tests="4" failures="1" errors="1" skipped="1")"));
  CHECK_THAT(xml, contains("<failure message"));
  CHECK_THAT(xml, contains("<error message"));
  CHECK_THAT(xml, contains("<skipped message"));
}

TEST_CASE("what XML reserves or cannot hold is escaped") {
  JunitCase c;
  c.name = "a<b & \"c\" \x01";
  c.kind = JunitCase::Kind::kFailed;
  c.message = "one\ntwo";
  const std::string xml = junit_xml("s", {c});
  CHECK_THAT(xml, contains("a&lt;b &amp; &quot;c&quot; ?"));
  CHECK_THAT(xml, contains("one&#10;two"));
  c.name = "\xc3\xa9 \xff \xe2\x82";  // e acute, then what is not UTF-8
  CHECK_THAT(junit_xml("s", {c}), contains("\xc3\xa9 ? ??\""));
}

}  // namespace
}  // namespace attn_diag::report

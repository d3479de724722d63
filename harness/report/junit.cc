#include "harness/report/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "harness/base/printable.h"

namespace attn_diag::report {
namespace {

std::string xml(std::string_view text) {
  std::string s;
  for (std::size_t i = 0, n; i < text.size(); i += n) {
    const CodePoint first = first_code_point(text.substr(i));
    n = std::max<std::size_t>(1, first.bytes);
    if (n > 1) {  // XML has no U+FFFE and U+FFFF
      const bool shown = !is_control(first.value) && (first.value & 0xfffeu) != 0xfffe;
      s += shown ? text.substr(i, n) : "?";
      continue;
    }
    const char c = text[i];
    switch (c) {
      case '&':
        s += "&amp;";
        break;
      case '<':
        s += "&lt;";
        break;
      case '>':
        s += "&gt;";
        break;
      case '"':
        s += "&quot;";
        break;
      case '\n':
        s += "&#10;";
        break;
      default:
        s += (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) ||
                     c == '\t'
                 ? c
                 : '?';
    }
  }
  return s;
}

const char* element(JunitCase::Kind kind) {
  switch (kind) {
    case JunitCase::Kind::kFailed:
      return "failure";
    case JunitCase::Kind::kError:
      return "error";
    default:
      return "skipped";
  }
}

}  // namespace

std::string junit_xml(const std::string& suite, const std::vector<JunitCase>& cases) {
  const auto number_of = [&](JunitCase::Kind kind) {
    return std::count_if(cases.begin(), cases.end(),
                         [&](const JunitCase& c) { return c.kind == kind; });
  };
  double seconds = 0;
  for (const JunitCase& c : cases) seconds += c.seconds;
  const std::string figures = fmt::format(
      R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")", cases.size(),
      number_of(JunitCase::Kind::kFailed), number_of(JunitCase::Kind::kError),
      number_of(JunitCase::Kind::kSkipped), seconds);

  std::string s = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  s += fmt::format("<testsuites {}>\n  <testsuite name=\"{}\" {}>\n", figures, xml(suite), figures);
  for (const JunitCase& c : cases) {
    s += fmt::format(R"(    <testcase classname="{}" name="{}" time="{:.3f}")", xml(c.class_name),
                     xml(c.name), c.seconds);
    if (c.kind == JunitCase::Kind::kPassed) {
      s += "/>\n";
      continue;
    }
    s += fmt::format(">\n      <{0} message=\"{1}\">{2}</{0}>\n    </testcase>\n", element(c.kind),
                     xml(c.message), xml(c.detail));
  }
  return s + "  </testsuite>\n</testsuites>\n";
}

}  // namespace attn_diag::report

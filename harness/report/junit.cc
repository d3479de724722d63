#include "harness/report/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace attn_diag::report {
namespace {

// Bytes of the UTF-8 sequence at the start of the text; 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead > 0xf4 || n > text.size()) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  return n;
}

std::string escape(std::string_view text) {
  std::string s;
  for (std::size_t i = 0, n; i < text.size(); i += n) {
    n = std::max<std::size_t>(1, sequence_length(text.substr(i)));
    if (n > 1) {
      s += text.substr(i, n);
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
  s += fmt::format("<testsuites {}>\n  <testsuite name=\"{}\" {}>\n", figures, escape(suite),
                   figures);
  for (const JunitCase& c : cases) {
    s += fmt::format(R"(    <testcase classname="{}" name="{}" time="{:.3f}")",
                     escape(c.class_name), escape(c.name), c.seconds);
    if (c.kind == JunitCase::Kind::kPassed) {
      s += "/>\n";
      continue;
    }
    s += fmt::format(">\n      <{0} message=\"{1}\">{2}</{0}>\n    </testcase>\n", element(c.kind),
                     escape(c.message), escape(c.detail));
  }
  return s + "  </testsuite>\n</testsuites>\n";
}

}  // namespace attn_diag::report

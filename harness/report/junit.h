// Verdicts as a JUnit XML file, which CI systems show.
#pragma once

#include <string>
#include <vector>

namespace attn_diag::report {

struct JunitCase {
  enum class Kind { kPassed, kFailed, kError, kSkipped };
  std::string class_name, name;
  Kind kind = Kind::kPassed;
  std::string message;  // one line; for all but kPassed
  std::string detail;   // text
  double seconds = 0;
};

// A whole document. Characters that XML 1.0 cannot hold are written as '?'.
std::string junit_xml(const std::string& suite, const std::vector<JunitCase>& cases);

}  // namespace attn_diag::report

// The line of code that crashed, and those that made the index, pointer or divisor there.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/host/check.h"
#include "attn_diag/harness/lines.h"

namespace attn_diag::lines {

enum class CrashOf : std::uint8_t {
  kAddress,  // an access of memory that is not there
  kBounds,   // an access that attn-diag check found out of bounds, before the crash
  kDivisor,  // a division by zero
  kOther,    // nothing of the line is known to be at fault
};

// `stack`: the user's code, innermost first. By the text of its lines alone: nothing is run. Without suspects where
// no line is known.
LineDivergence crash_lines(const std::vector<host::SourcePlace>& stack, CrashOf of,
                           const std::string& what);

// The loops around where a run was that did not end, as above.
LineDivergence endless_lines(const std::vector<host::SourcePlace>& stack, const std::string& what);

}  // namespace attn_diag::lines

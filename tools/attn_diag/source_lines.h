// Code addresses as lines of source.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/host/check.h"
#include "tools/attn_diag/crash_page.h"

namespace attn_diag::cli {

// "function (file:line)" of each frame, innermost first, without those of this program and the executor,
// as far as debug information tells; else "function (library+0x12a0)", or the latter alone.
struct Frames {
  std::vector<std::string> texts;
  std::vector<host::SourcePlace>
      places;  // of the user's code, innermost first, with those of inlined functions
};
Frames frames_of(const CrashPage& page);

}  // namespace attn_diag::cli

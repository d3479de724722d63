// What attn-diag check says of a case that crashed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/host/check.h"
#include "tools/attn_diag/crash_page.h"

namespace attn_diag::cli {

// The first access out of bounds: where a process crashes is seldom where that was.
struct OutOfBounds {
  std::string message;
  std::vector<host::SourcePlace> places;  // innermost first, at least one
};

// Runs the case again in a process of its own, watched. Nothing where no case was in progress, or where that finds none.
std::optional<OutOfBounds> first_out_of_bounds(const CrashPage& page);

}  // namespace attn_diag::cli

// Source lines of program counters, by addr2line of the GNU binutils.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attn_diag/harness/host/check.h"

namespace attn_diag::host {

struct SourceLines {
  std::map<std::uint64_t, std::vector<SourcePlace>> places;  // by offset into the library
  std::string problem;                                       // why there are none
};

// Of return addresses, as offsets from the library's base: the line of the call.
SourceLines find_source_lines(const std::string& library,
                              const std::vector<std::uint64_t>& offsets);

}  // namespace attn_diag::host

// Source lines and functions of program counters, from the debug information and symbol tables of a library.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attn_diag/harness/host/check.h"

namespace attn_diag::host {

struct SourceLines {
  std::map<std::uint64_t, std::vector<SourcePlace>> places;  // by offset into the library
  std::set<std::uint64_t> without_line;  // of code that has lines otherwise: the compiler's own
  std::string problem;                   // why there are none
};

// The lines of the calls, from return addresses as offsets from the library's base. No path: the main program's.
SourceLines find_source_lines(const std::string& library,
                              const std::vector<std::uint64_t>& offsets);

// How many bytes above the stack pointer the return address of the function lies that goes on at each offset, from the
// library's call frame information. Those of which that is not known are left out, as where it counts from another
// register.
std::map<std::uint64_t, std::int64_t> find_frames(const std::string& library,
                                                  const std::vector<std::uint64_t>& offsets);

// The name of the function at an address of an ELF file, from its symbol table or, where it has none, from what it
// exports: mangled, and demangled. Empty: not known.
std::string symbol_name(const std::string& path, std::uint64_t offset);
std::string function_name(const std::string& path, std::uint64_t offset);

// Without the lines of the stand-in CUDA headers, which are inlined everywhere: what called them is meant.
std::vector<SourcePlace> users_places(std::vector<SourcePlace> places);

}  // namespace attn_diag::host

// A small change of a source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/repair/code.h"

namespace attn_diag::repair {

// How an edit gets into a library of many, one of which is chosen at run time.
enum class Way : std::uint8_t {
  kExpression,  // (chosen ? alternative : as it was)
  kStatement,   // { if (chosen) alternative else as it was }
  kInsertion,   // if (chosen) alternative
  kAlone,       // it cannot be chosen at run time: the compiler must know it
};

struct Edit {
  std::string_view operation;      // "relational operator"
  int file = 0;                    // of Program::files
  int line = 0, last_line = 0;     // of what is replaced
  int statement_line = 0;          // the first one of the statement that it is in
  std::size_t begin = 0, end = 0;  // bytes of the file that are replaced
  std::string text;                // by this
  Way way = Way::kAlone;
  // What the choice is made around: the bytes of an expression, of a statement, or a place.
  std::size_t site_begin = 0, site_end = 0;
  std::string alternative;  // what stands for the site, on one line
  // The site as it is, on one line, where it is a number: alternatives are converted to its type, since a choice between
  // int and unsigned would have another. Empty: it is something else, or stored to.
  std::string number;
  bool on_host = false;   // of a function that launches kernels
  bool in_macro = false;  // among the arguments of a macro, where no line may begin with "#"
  int tier = 0;           // how far off the usual mistakes it is: 0, 1, 2
  int size =
      0;  // how much it changes: words and signs that come in count 2, those that go 1, if none come 2 more
};

inline constexpr std::string_view kBarrierOperation = "barrier";

// Every edit that is tried, without repetitions.
std::vector<Edit> propose_edits(const Program& program);

// The file's text with the edit.
std::string edited(const Code& code, const Edit& edit);

// As `diff -u` writes it, with the names "a/<name>" and "b/<name>".
std::string unified_diff(const std::string& name, const std::string& before,
                         const std::string& after);

}  // namespace attn_diag::repair

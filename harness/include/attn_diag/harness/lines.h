// The line: where in its source a kernel, as it is, without taps, first leaves attention.
//
// The kernel's sources are built once more so that every number tells how it was made (host/values.h). From the inputs
// on, each number is then read as a quantity of attention, with its indices, whatever the tiling. The answer is the
// first number that is no such quantity, or the first sum that lacks keys or has some it should not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/experiment.h"

namespace attn_diag {

struct CheckResult;

struct LinePlace {
  std::string file, function;
  int line = 0, column = 0;
  std::string
      text;  // of the line, without blanks around it; of suspects that of the statement, where it has several
  std::string variable;  // empty: nothing with a name
};

struct LineSuspect {
  LinePlace place;
  std::string why;  // "adds parts in different frames"
};

// What a variable holds at a line, in the watched blocks.
struct LineRole {
  LinePlace place;
  std::string holds;         // "scores, times 0.125"
  std::int64_t numbers = 0;  // that were seen there
  double share = 0;          // of these numbers, the part that is what `holds` says
};

// Which elements of an input a line loads.
struct LineReads {
  LinePlace place;
  std::string input;    // "k"
  std::string rows;     // "0..63 of 64"
  std::string columns;  // "0..31 of 64"
};

enum class LineAnswer : std::uint8_t {
  kNotLooked,  // see `reason`
  kNone,       // every number is what attention asks for
  kLine,       // the first suspect is where it goes wrong
  kUnsure,     // the suspects are likely, no more
};
const char* name(LineAnswer answer);

// In which part of attention numbers first are not what they should be, whichever line is to blame.
enum class LineFault : std::uint8_t {
  kNotKnown,
  kScores,     // of q.k: columns, heads, factors, sums; or their exponentials
  kKeys,       // a sum lacks keys, has some it should not, or one twice
  kFrames,     // parts of a sum are relative to different numbers
  kRows,       // of another query row
  kOperands,   // a weight times v of another key, column or head
  kDivision,   // the right sum times a wrong factor
  kPlace,      // stored elsewhere, or by nobody
  kNoNumbers,  // NaN, a number that comes from no input, or an operation without meaning
  kRounding,   // none: every number is made as attention asks for
};
const char* name(LineFault fault);

// Small edits of the source, where they were tried.
struct TriedEdits {
  std::string operation,
      diff;  // the smallest under which `cases` agree, unified; empty: none was found
  std::vector<std::string> cases;  // "H=2 S=40 D=32 fp16 causal, schedule reverse"
  std::string reason;              // why none was found
  int tried = 0;
  double seconds = 0;

  bool found() const { return !diff.empty(); }
};

struct LineDivergence {
  LineAnswer answer = LineAnswer::kNotLooked;
  LineFault fault = LineFault::kNotKnown;
  // Whether that is seen in most wrong elements, and not in right ones.
  bool fault_is_firm = false;
  std::string reason;                 // of kNotLooked and kUnsure
  std::vector<LineSuspect> suspects;  // the likeliest first
  // Of these: they are of threads that do not wait for each other, as attn-diag check finds.
  bool of_order = false;
  std::string what;   // a sentence: "o of query 5 lacks keys 32..63"
  std::string where;  // "block 3, thread 17, query 5, key 32"; empty: nothing to say
  std::vector<LineRole> roles;
  std::vector<LineReads> reads;
  std::vector<std::string> unread;  // "rows 32..63 of v are loaded by no line"
  std::int64_t numbers = 0;         // looked at
  // Right elements of o in the watched blocks, and how many of them are computed as attention asks for.
  std::int64_t right = 0, understood = 0;
  std::optional<TriedEdits> edits;  // where asked for
};

// What is looked at first.
enum class LinesBy : std::uint8_t {
  kNumbers,
  kNumbersOfRight,  // for what agrees: what the numbers are is all there is to tell
  kChecker,         // for refused runs and results that move: what the checker finds comes first
};

// For a case that diverges: makes the kernel's watch build and runs it twice, to find which blocks make the
// wrong rows and what they compute. `reason` says what could not be done.
// `checked`: what attn-diag check finds of the experiment, if that is known.
LineDivergence trace_lines(const Experiment& experiment, LinesBy by = LinesBy::kNumbers,
                           const CheckResult* checked = nullptr);

}  // namespace attn_diag

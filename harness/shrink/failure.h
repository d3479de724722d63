// What is wrong with a case, as far as it must stay the same while the case becomes smaller.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "attn_diag/harness/trace.h"
#include "harness/base/helper.h"

namespace attn_diag::shrink {

enum class FailureKind : std::uint8_t {
  kNone,          // it agrees
  kWrong,         // a tensor is
  kWritesInputs,  // it writes q, k or v
  kMoves,         // the result is not the same in every run
  kRefused,       // a run ended with an error: it wrote outside, did not complete
  kCrash,         // its process ended
  kNoEnd,         // it did not end in time
};

// What is wrong in the cells of a tensor.
enum class WrongAs : std::uint8_t { kNumbers, kNaN, kInfinite, kNeverWritten, kWrittenTwice };

struct Failure {
  FailureKind kind = FailureKind::kNone;
  Tensor tensor = Tensor::kO;  // of kWrong: the first that is, and how
  WrongAs as = WrongAs::kNumbers;
  bool moves = false;      // besides, the result is not the same in every run
  std::string error_kind;  // of kRefused: its message, without numbers
  std::string line;  // that trace's lines name, "mine.cu:42"; empty: not asked for, or not known

  // What follows may change with the case.
  std::string what;  // a few words: "o is wrong", the message of an error
  std::array<std::int64_t, 3> row{-1, -1,
                                  -1};  // of kWrong: batch, head and query of the first wrong cell

  bool same_as(const Failure& other) const;
};

Failure failure_of(const TraceResult& result);
// The failure of a kernel that was run without being traced.
Failure failure_of(const Capture& capture, const Comparison& comparison);
Failure failure_of(const Error& refused);

// "store to 0x7f.. at k.cu:12 by thread 3" and the same of thread 5 are one kind: what is in parentheses and all
// numbers are left out, and all but the first sentence.
std::string kind_of_error(const std::string& message);

Bytes to_bytes(const Failure& failure);
Failure failure_from(WireReader& from);

}  // namespace attn_diag::shrink

// The text of an inline PTX statement, taken apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::source {

// Something in PTX that cannot be translated. `at`: place in the text.
struct PtxProblem {
  std::size_t at = 0;
  std::string message;
};

struct PtxOperand {
  enum class Kind {
    kName,       // a register, a label, or %laneid and the like: text
    kNumbered,   // %3: number
    kImmediate,  // text as written
    kAddress,    // [base + offset]: parts[0], text = offset or empty
    kVector,     // {a, b}: parts
    kPair,       // p|q: parts
    kSink,       // _
  };
  Kind kind = Kind::kName;
  std::string text;
  int number = 0;
  bool negated = false;  // !p
  std::vector<PtxOperand> parts = {};
};

struct PtxInstruction {
  std::size_t at = 0;
  std::string guard;  // the predicate of @p, or empty; %3 as "%3"
  bool guard_negated = false;
  std::string opcode;                  // "mma.sync.aligned.m16n8k16..."
  std::vector<std::string> modifiers;  // behind the first point
  std::string root;                    // before it
  std::vector<PtxOperand> operands;
};

struct PtxStatement {
  enum class Kind { kInstruction, kRegisters, kLabel, kOpen, kClose };
  Kind kind = Kind::kInstruction;
  std::size_t at = 0;
  PtxInstruction instruction = {};
  std::string type = {};                // of registers: "b32"
  std::vector<std::string> names = {};  // of registers; of a label, one
};

// Throws PtxProblem.
std::vector<PtxStatement> parse_ptx(std::string_view text);

}  // namespace attn_diag::source

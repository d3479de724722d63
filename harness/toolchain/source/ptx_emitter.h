// From one PTX instruction to a C++ statement over attn_diag_host/ptx.h.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/toolchain/source/ptx.h"

namespace attn_diag::source {

// The C++ variable of a register or of an operand of the statement.
struct PtxVariable {
  std::string name;
  bool is_predicate = false;
};

class PtxEmitter {
 public:
  // `find`: the variable of a register or label; null if there is none. `place`: "x.cu", 12.
  PtxEmitter(const PtxInstruction& instruction,
             std::function<const PtxVariable*(const std::string&)> find,
             const std::vector<PtxVariable>& operands, std::string place);

  // The statement, guarded if the instruction is. Throws PtxProblem for what is not supported.
  std::string emit();

  // For the translators of instructions, ptx_*.cc.
  const PtxInstruction& instruction() const { return x_instruction; }
  std::size_t count() const { return x_instruction.operands.size(); }
  const PtxOperand& operand(std::size_t i) const;
  // Takes a modifier, if it is the next, or anywhere.
  bool take(std::string_view modifier);
  std::string take_any(std::initializer_list<std::string_view> modifiers);  // "" if none is there
  std::string take_prefix(std::string_view prefix);                         // "L2::128B"
  // The next type, as C++ has it; of two, the first is that of the result.
  std::string take_type();
  void end_of_modifiers() const;
  void expect_operands(std::size_t least, std::size_t most) const;

  // attn_diag_ptx::get<T>(operand)
  std::string get(const std::string& type, std::size_t i) const { return value(type, operand(i)); }
  std::string value(const std::string& type, const PtxOperand& operand) const;
  std::string variable(const PtxOperand& operand) const;  // to be assigned to
  bool is_predicate(std::size_t i) const;
  void set(const PtxOperand& to, const std::string& expression);
  void set(std::size_t i, const std::string& expression) { set(operand(i), expression); }
  void run(const std::string& expression) { x_code += expression + "; "; }
  // A pointer from [a + b]: in shared memory for a space of "shared", in it or generic by its size for "matrix", else generic.
  std::string pointer(std::size_t i, std::string_view space) const;
  // "shared" for "shared::cta" too; "" is generic. Throws for spaces that have no place here.
  std::string take_space();
  const std::string& place() const { return x_place; }
  std::string fresh(const std::string& stem);  // a variable of this statement
  [[noreturn]] void unsupported(const std::string& advice = "") const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::string immediate(const std::string& text) const;

  const PtxInstruction& x_instruction;
  std::vector<std::string> x_modifiers;  // not yet taken
  std::function<const PtxVariable*(const std::string&)> x_find;
  const std::vector<PtxVariable>& x_operands;
  std::string x_place, x_code;
  int x_fresh = 0;
};

// The C++ type of a PTX type ("u32"), or "" if it is none.
std::string ptx_type(std::string_view name);
// The expression of a special register ("%laneid"), or "".
std::string ptx_special_register(const std::string& name);

using PtxTranslator = void (*)(PtxEmitter&);
// Hints, launch control and register counts: nothing on the host depends on them.
inline void nothing(PtxEmitter&) {}
using PtxTranslators = std::map<std::string_view, PtxTranslator>;
const PtxTranslators& ptx_arithmetic();
const PtxTranslators& ptx_bits();
const PtxTranslators& ptx_conversions();
const PtxTranslators& ptx_memory();
const PtxTranslators& ptx_synchronisation();
const PtxTranslators& ptx_warp();

}  // namespace attn_diag::source

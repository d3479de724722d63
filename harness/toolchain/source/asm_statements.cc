// asm volatile("..." : out : in : clobbered): inline PTX, as C++ over attn_diag_host/ptx.h.
//
// The statement becomes `do { registers; instructions; results } while (false)`. Each instruction is
// written at the place of the string that holds it, so that its accesses and errors have its line.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/toolchain/source/pass.h"
#include "harness/toolchain/source/ptx_emitter.h"

namespace attn_diag::source {
namespace {

struct AsmOperand {
  std::string constraint;  // "=r", "+f", "n"
  std::string expression;
  char kind() const { return constraint.empty() ? '?' : constraint.back(); }
  bool is_output() const { return constraint.find_first_of("=+") != std::string::npos; }
  bool is_read() const { return constraint.find('=') == std::string::npos; }
};

struct AsmStatement {
  std::size_t begin = 0, open = 0, close = 0;  // tokens: asm, its parentheses
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> strings;  // offset in text, token
  std::vector<AsmOperand> operands;
  std::size_t token_of(std::size_t offset) const {
    std::size_t token = begin;
    for (const auto& [start, string] : strings)
      if (start <= offset) token = string;
    return token;
  }
};

AsmStatement parse_statement(const Pass& pass, std::size_t begin, std::size_t open) {
  const Syntax& s = pass.syntax;
  AsmStatement statement;
  statement.begin = begin;
  statement.open = open;
  statement.close = s.match(open);
  std::size_t i = open + 1;
  for (; s[i].kind == TokenKind::kString || s[i].kind == TokenKind::kDirective; ++i) {
    if (s[i].kind == TokenKind::kDirective) continue;
    statement.strings.emplace_back(statement.text.size(), i);
    statement.text += string_value(s[i].text);
  }
  int section = 0;  // 1: outputs, 2: inputs, 3: clobbered
  while (i < statement.close) {
    if (s.is(i, ":") || s.is(i, "::")) {
      section += s.is(i, "::") ? 2 : 1;
      ++i;
    } else if (s[i].kind == TokenKind::kString && (section == 1 || section == 2)) {
      AsmOperand operand;
      operand.constraint = string_value(s[i].text);
      while (s[i + 1].kind == TokenKind::kString) operand.constraint += string_value(s[++i].text);
      if (!s.is(i + 1, "("))
        throw SourceError(s.file(i), s.line(i),
                          fmt::format("the operand {} of asm has no value: expected {}(expression)",
                                      s[i].text, s[i].text));
      operand.expression = pass.source(i + 2, s.match(i + 1));
      statement.operands.push_back(operand);
      i = s.match(i + 1) + 1;
    } else {
      ++i;
    }
  }
  return statement;
}

const char* register_type(char constraint) {
  switch (constraint) {
    case 'h':
      return "std::uint16_t";
    case 'r':
    case 'f':
      return "std::uint32_t";
    case 'l':
    case 'd':
      return "std::uint64_t";
    default:
      return nullptr;
  }
}

class AsmTranslation {
 public:
  AsmTranslation(Pass& pass, const AsmStatement& statement, std::size_t number)
      : x_pass(pass), x_statement(statement), x_prefix(fmt::format("attn_diag_{}_", number)) {}

  // What stands at which token, by place in the text.
  void run() {
    const Syntax& s = x_pass.syntax;
    const std::vector<PtxStatement> statements = parse();
    Item item{ItemKind::kAsm, s.file(x_statement.begin), s.line(x_statement.begin), "", {}};
    std::string prologue = "do { namespace attn_diag_ptx = ::attn_diag::host::ptx; ";
    std::string epilogue;
    bind_operands(prologue, epilogue);
    declare(statements, prologue);

    std::map<std::size_t, std::string> code;  // by token
    x_scope = {0};
    std::size_t next_scope = 1;
    for (const PtxStatement& statement : statements) {
      const std::size_t token = x_statement.token_of(statement.at);
      if (statement.kind == PtxStatement::Kind::kOpen) x_scope.push_back(next_scope++);
      if (statement.kind == PtxStatement::Kind::kClose && x_scope.size() > 1) x_scope.pop_back();
      if (statement.kind == PtxStatement::Kind::kLabel)
        code[token] += "[[maybe_unused]] " + find(statement.names.front())->name + ":; ";
      if (statement.kind != PtxStatement::Kind::kInstruction) continue;
      const PtxInstruction& instruction = statement.instruction;
      PtxEmitter emitter(
          instruction, [this](const std::string& name) { return find(name); }, x_operands,
          x_pass.place(token));
      code[token] += emitter.emit();
      item.instructions.push_back(instruction.opcode);
    }
    item.text = x_pass.source(x_statement.begin, x_statement.close + 1);
    x_pass.out.items.push_back(item);

    // In pieces, so that every instruction keeps its line.
    std::size_t from = x_statement.begin;
    std::string pending = prologue;
    for (const auto& [token, text] : code) {
      if (token == from) continue;
      x_pass.replace(from, token, pending);
      pending = text;
      from = token;
    }
    x_pass.replace(from, x_statement.close + 1, pending + epilogue + "} while (false)");
  }

 private:
  std::vector<PtxStatement> parse() const { return parse_ptx(x_statement.text); }

  void bind_operands(std::string& prologue, std::string& epilogue) {
    for (std::size_t i = 0; i < x_statement.operands.size(); ++i) {
      const AsmOperand& operand = x_statement.operands[i];
      const std::string name = fmt::format("{}{}", x_prefix, i);
      if (operand.kind() == 'n' || operand.kind() == 'i') {
        prologue +=
            fmt::format("[[maybe_unused]] constexpr auto {} = attn_diag_ptx::constant({}); ", name,
                        operand.expression);
        x_operands.push_back({name, false});
        continue;
      }
      const char* type = register_type(operand.kind());
      if (type == nullptr)
        throw PtxProblem{0,
                         fmt::format("the constraint \"{}\" of asm is not one of PTX: expected h "
                                     "(16 bits), r (32), l (64), f (float), d (double) or n "
                                     "(constant), with = or + for results",
                                     operand.constraint)};
      const std::string reference = name + "_result";
      if (operand.is_output()) {
        prologue += fmt::format("auto&& {} = ({}); ", reference, operand.expression);
        epilogue +=
            fmt::format("attn_diag_ptx::write<'{}'>({}, {}); ", operand.kind(), reference, name);
      }
      prologue += fmt::format(
          "[[maybe_unused]] {} {} = {}; ", type, name,
          operand.is_read() ? fmt::format("attn_diag_ptx::read<'{}'>({})", operand.kind(),
                                          operand.is_output() ? reference : operand.expression)
                            : fmt::format("static_cast<{}>(-1)", type));
      x_operands.push_back({name, false});
    }
  }

  // All registers in front, since jumps may not pass initialisations.
  void declare(const std::vector<PtxStatement>& statements, std::string& prologue) {
    std::vector<std::size_t> scope = {0};
    std::size_t next_scope = 1;
    for (const PtxStatement& statement : statements) {
      if (statement.kind == PtxStatement::Kind::kOpen) scope.push_back(next_scope++);
      if (statement.kind == PtxStatement::Kind::kClose && scope.size() > 1) scope.pop_back();
      const bool label = statement.kind == PtxStatement::Kind::kLabel;
      if (!label && statement.kind != PtxStatement::Kind::kRegisters) continue;
      for (const std::string& name : statement.names) {
        std::string variable = fmt::format("{}{}_{}", x_prefix, scope.back(), name);
        std::replace(variable.begin(), variable.end(), '.', '_');
        x_variables[{scope.back(), name}] = {variable, statement.type == "pred"};
        if (label) continue;
        const std::string& type = statement.type;
        const char* width = type == "pred"                                   ? "bool"
                            : type.ends_with("64")                           ? "std::uint64_t"
                            : type.ends_with("16x2") || type.ends_with("32") ? "std::uint32_t"
                            : type.ends_with("16")                           ? "std::uint16_t"
                            : type.ends_with("8")                            ? "std::uint8_t"
                                                                             : nullptr;
        if (width == nullptr)
          throw PtxProblem{statement.at,
                           fmt::format("unsupported: PTX registers of type .{}", type)};
        prologue +=
            fmt::format("[[maybe_unused]] {} {} = {}; ", width, variable,
                        type == "pred" ? "false" : fmt::format("static_cast<{}>(-1)", width));
      }
    }
  }

  const PtxVariable* find(const std::string& name) const {
    for (auto scope = x_scope.rbegin(); scope != x_scope.rend(); ++scope) {
      const auto found = x_variables.find({*scope, name});
      if (found != x_variables.end()) return &found->second;
    }
    return nullptr;
  }

  Pass& x_pass;
  const AsmStatement& x_statement;
  std::string x_prefix;
  std::vector<PtxVariable> x_operands;
  std::map<std::pair<std::size_t, std::string>, PtxVariable> x_variables;
  std::vector<std::size_t> x_scope;
};

}  // namespace

void translate_asm(Pass& pass) {
  const Syntax& s = pass.syntax;
  std::size_t number = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!pass.is_open(i) || !(s.is(i, "asm") || s.is(i, "__asm__") || s.is(i, "__asm"))) continue;
    std::size_t open = i + 1;
    while (s.is(open, "volatile") || s.is(open, "__volatile__") || s.is(open, "__volatile")) ++open;
    // Behind a name: the symbol of a declaration.
    const bool is_statement = i == 0 || s.is(i - 1, ";") || s.is(i - 1, "{") || s.is(i - 1, "}") ||
                              s.is(i - 1, ")") || s.is(i - 1, ":") || s.is(i - 1, "else") ||
                              s.is(i - 1, "do") || s[i - 1].kind == TokenKind::kDirective;
    if (!s.is(open, "(") || !is_statement) continue;
    const AsmStatement statement = parse_statement(pass, i, open);
    try {
      const bool barrier = statement.operands.empty() &&
                           statement.text.find_first_not_of(" \t\n;") == std::string::npos;
      if (!barrier) AsmTranslation(pass, statement, number++).run();
    } catch (const PtxProblem& problem) {
      pass.error(statement.token_of(problem.at), problem.message);
    }
    i = statement.close;
  }
}

}  // namespace attn_diag::source

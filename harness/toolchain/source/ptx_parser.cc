#include <fmt/format.h>
#include <cctype>
#include <charconv>

#include "harness/toolchain/source/ptx.h"

namespace attn_diag::source {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : x_text(text) {}

  std::vector<PtxStatement> run() {
    while (skip_space(), x_at < x_text.size()) statement();
    return std::move(x_statements);
  }

 private:
  char peek() const { return x_at < x_text.size() ? x_text[x_at] : '\0'; }
  bool looking_at(std::string_view what) const { return x_text.substr(x_at).starts_with(what); }
  [[noreturn]] void fail(const std::string& message) const { throw PtxProblem{x_at, message}; }

  void skip_space() {
    while (x_at < x_text.size()) {
      if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
        ++x_at;
      } else if (looking_at("//")) {
        while (x_at < x_text.size() && peek() != '\n') ++x_at;
      } else if (looking_at("/*")) {
        const std::size_t end = x_text.find("*/", x_at + 2);
        x_at = end == std::string_view::npos ? x_text.size() : end + 2;
      } else {
        return;
      }
    }
  }
  bool take(char c) {
    skip_space();
    if (peek() != c) return false;
    ++x_at;
    return true;
  }
  void expect(char c) {
    if (!take(c))
      fail(fmt::format("PTX: expected '{}' before '{}'", c,
                       std::string(x_text.substr(x_at, x_text.find('\n', x_at) - x_at))));
  }
  std::string word() {
    skip_space();
    const std::size_t begin = x_at;
    while (is_word(peek())) ++x_at;
    return std::string(x_text.substr(begin, x_at - begin));
  }
  // "mma.sync.aligned", ".reg", "shared::cta": letters, digits, points, double colons.
  std::string dotted() {
    skip_space();
    const std::size_t begin = x_at;
    while (is_word(peek()) || peek() == '.' || looking_at("::")) x_at += looking_at("::") ? 2 : 1;
    return std::string(x_text.substr(begin, x_at - begin));
  }

  void add(PtxStatement::Kind kind, std::size_t at) {
    PtxStatement statement;
    statement.kind = kind;
    statement.at = at;
    x_statements.push_back(statement);
  }

  void statement() {
    const std::size_t at = x_at;
    if (take(';')) return;
    if (take('{')) return add(PtxStatement::Kind::kOpen, at);
    if (take('}')) return add(PtxStatement::Kind::kClose, at);
    if (peek() == '.') return directive();
    PtxInstruction instruction;
    instruction.at = at;
    if (take('@')) {
      instruction.guard_negated = take('!');
      skip_space();
      const std::size_t begin = x_at;
      while (peek() == '%') ++x_at;
      word();
      instruction.guard = x_text.substr(begin, x_at - begin);
    }
    instruction.opcode = dotted();
    if (instruction.opcode.empty()) fail(fmt::format("PTX: '{}' is not understood", peek()));
    if (instruction.guard.empty() && take(':')) {
      add(PtxStatement::Kind::kLabel, at);
      x_statements.back().names.push_back(instruction.opcode);
      return;
    }
    skip_space();
    while (peek() != ';' && peek() != '}' && x_at < x_text.size()) {
      instruction.operands.push_back(operand());
      if (!take(',')) break;
    }
    skip_space();
    // The last instruction may go without its semicolon.
    if (peek() != '}' && x_at < x_text.size()) expect(';');
    split(instruction);
    add(PtxStatement::Kind::kInstruction, at);
    x_statements.back().instruction = instruction;
  }

  static void split(PtxInstruction& instruction) {
    std::size_t begin = 0;
    while (begin <= instruction.opcode.size()) {
      const std::size_t end =
          std::min(instruction.opcode.find('.', begin), instruction.opcode.size());
      const std::string part = instruction.opcode.substr(begin, end - begin);
      if (begin == 0)
        instruction.root = part;
      else
        instruction.modifiers.push_back(part);
      begin = end + 1;
    }
  }

  void directive() {
    const std::size_t at = x_at;
    const std::string words = dotted();
    if (!words.starts_with(".reg"))
      throw PtxProblem{at,
                       fmt::format("unsupported: the PTX directive {} in inline assembly", words)};
    std::string type = words.substr(4);
    if (type.empty()) type = dotted();
    if (type.starts_with(".")) type.erase(0, 1);
    add(PtxStatement::Kind::kRegisters, at);
    x_statements.back().type = type;
    do {
      skip_space();
      while (peek() == '%') ++x_at;
      const std::string name = word();
      if (name.empty()) fail("PTX: .reg without the name of a register");
      if (!take('<')) {
        x_statements.back().names.push_back(name);
        continue;
      }
      const int count = number(word());
      expect('>');
      for (int i = 0; i < count; ++i) x_statements.back().names.push_back(name + std::to_string(i));
    } while (take(','));
    expect(';');
  }

  // A number of registers or of an operand: no statement has many.
  int number(const std::string& digits) const {
    constexpr int kMost = 4096;
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value > kMost)
      fail(fmt::format("PTX: {} is no number of registers or operands", digits));
    return value;
  }

  PtxOperand operand() {
    PtxOperand first = simple();
    if (!take('|')) return first;
    PtxOperand pair;
    pair.kind = PtxOperand::Kind::kPair;
    pair.parts = {first, simple()};
    return pair;
  }

  PtxOperand simple() {
    PtxOperand result;
    if (take('{')) {
      result.kind = PtxOperand::Kind::kVector;
      do {
        result.parts.push_back(simple());
      } while (take(','));
      expect('}');
      return result;
    }
    if (take('[')) {
      result.kind = PtxOperand::Kind::kAddress;
      result.parts.push_back(simple());
      skip_space();
      if (peek() == '+' || peek() == '-') {
        const bool minus = peek() == '-';
        ++x_at;
        const PtxOperand offset = simple();
        if (offset.kind == PtxOperand::Kind::kNumbered)
          result.parts.push_back(offset);
        else
          result.text = (minus ? "-" : "") + offset.text;
      }
      if (take(',')) {  // [map, {x, y}]: of tensor copies
        result.parts.push_back(simple());
      }
      expect(']');
      return result;
    }
    result.negated = take('!');
    skip_space();
    if (peek() == '%') {
      while (peek() == '%') ++x_at;
      if (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
        result.kind = PtxOperand::Kind::kNumbered;
        result.number = number(word());
        return result;
      }
      result.text = "%" + dotted();
      return result;
    }
    const bool minus = take('-');
    skip_space();
    if (std::isdigit(static_cast<unsigned char>(peek())) != 0 || peek() == '.') {
      const std::size_t begin = x_at;
      while (is_word(peek()) || peek() == '.' ||
             ((peek() == '+' || peek() == '-') &&
              (x_text[x_at - 1] == 'e' || x_text[x_at - 1] == 'E') &&
              !x_text.substr(begin).starts_with("0f") && !x_text.substr(begin).starts_with("0x")))
        ++x_at;
      result.kind = PtxOperand::Kind::kImmediate;
      result.text = (minus ? "-" : "") + std::string(x_text.substr(begin, x_at - begin));
      return result;
    }
    result.text = word();
    if (minus && result.text.empty()) fail("PTX: '-' without a number");
    if (result.text == "_") result.kind = PtxOperand::Kind::kSink;
    if (result.text.empty())
      fail(fmt::format("PTX: '{}' is not understood",
                       peek() == '\0' ? "the end of the text" : std::string(1, peek())));
    return result;
  }

  std::string_view x_text;
  std::size_t x_at = 0;
  std::vector<PtxStatement> x_statements;
};

}  // namespace

std::vector<PtxStatement> parse_ptx(std::string_view text) { return Parser(text).run(); }

}  // namespace attn_diag::source

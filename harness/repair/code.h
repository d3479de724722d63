// A source of the user's, taken apart as far as small edits of it need: functions that run on the device or launch what
// does, their statements, expressions and variables. Places are indices of tokens, ranges half open.
//
// This is no compiler: what it does not understand is opaque, and is left alone.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/toolchain/source/syntax.h"

namespace attn_diag::repair {

using source::Token;

enum class ExpressionKind {
  kName,         // i, kTile, ns::f<T>
  kNumber,       // 32, 0.5f
  kParenthesis,  // (x)
  kCall,         // f(x, y), k<<<g, b>>>(x): callee, what is between <<< and >>>, arguments
  kIndex,        // a[i]: array, index
  kMember,       // a.x, p->x: object
  kPrefix,       // -x
  kPostfix,      // i++
  kBinary,       // a * b
  kAssignment,   // a += b
  kConditional,  // a ? b : c
  kCast,         // (float)x
  kBraces,       // {a, b}, T{a}
  kOpaque,       // anything else; parts of it may be known
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kOpaque;
  std::size_t begin = 0, end = 0;
  std::size_t op =
      0;  // the operator; of a member its name; of a call, an index or braces the bracket
  std::vector<int> parts;  // indices of DeviceFunction::expressions
  int parent = -1;
  int statement = -1;
  // What it computes must be known to the compiler: a template argument, the extent of an array.
  bool constant = false;
};

enum class StatementKind {
  kBlock,
  kIf,
  kLoop,
  kReturn,
  kJump,  // break, continue
  kExpression,
  kDeclaration,
  kOther
};

struct Statement {
  StatementKind kind = StatementKind::kOther;
  std::size_t begin = 0, end = 0;
  int parent = -1;
  bool in_block = false;         // others may stand before and behind it
  std::vector<int> conditions;   // of if, while and for; of for its start and its step are apart
  std::vector<int> expressions;  // all that stand in it itself, outermost ones
};

struct Variable {
  std::string name,
      type;  // "float", "half*", "float[][]": without const, references and where it lives
  std::size_t from = 0, to = 0;  // where it can be used
  bool constant = false;         // the compiler knows its value
  bool initialised = true;
  bool is_const = false;        // nothing is stored to it
  bool const_elements = false;  // nor, of a pointer or an array, to what it leads to
  std::size_t declared = 0;     // its name; size() of the file's tokens for what is built in
  int statement = -1;           // that declares it; -1: a parameter, or outside
  int initialiser = -1;         // the expression of its first value; -1: not known
};

struct DeviceFunction {
  std::string name;
  std::string returns;  // as Variable::type has it; empty: not known
  bool is_kernel = false;
  bool on_host = false;               // kernels are launched by it, or by what it calls
  std::size_t open = 0, close = 0;    // "{" and "}"
  std::vector<Statement> statements;  // an outer one before those in it
  std::vector<Expression> expressions;
  std::vector<Variable> variables;  // of it, and those outside that it can use
};

// A struct of the user's.
struct Record {
  std::string name;
  std::size_t open = 0, close = 0;  // "{" and "}", in its file
  std::vector<Variable> fields;
};

struct Code {
  std::string path, shown;  // as the compiler sees it, as reports have it
  std::string text;
  source::TokenList list;
  std::unique_ptr<source::Syntax> syntax;  // null: not to be taken apart
  std::string problem;                     // why
  std::vector<DeviceFunction> functions;
  // What must be known to the compiler, outside functions: constexpr int kTile = 32.
  std::vector<Expression> constants;
  std::vector<Record> records;

  const Token& token(std::size_t i) const { return (*syntax)[i]; }
  int line(std::size_t i) const { return syntax->line(i); }
  // The text of a range as it is written, and on one line.
  std::string_view written(std::size_t begin, std::size_t end) const;
  std::string words(std::size_t begin, std::size_t end) const;
};

struct SourceFile {
  std::string path, shown, text;
};

// The files of one library: what one of them declares the others may use.
struct Program {
  std::vector<std::unique_ptr<Code>> files;
  std::vector<std::string> macros;  // those with arguments

  const Record* record(std::string_view type) const;
};

// Never throws for what the texts are: Code::problem says what was wrong.
Program take_apart(const std::vector<SourceFile>& files);

// Of a type as Variable::type spells it.
bool is_integer(std::string_view type);
bool is_count(std::string_view type);  // an integer that is no bool
bool is_real(std::string_view type);   // float or double

}  // namespace attn_diag::repair

// Takes one function apart.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "harness/repair/code.h"
#include "harness/repair/declarations.h"

namespace attn_diag::repair {

class Parser {
 public:
  // Results go into `function`, whose variables so far are those of outside.
  Parser(const source::Syntax& syntax, DeviceFunction& function)
      : x_syntax(syntax), x_function(function) {}

  void parameters(std::size_t open);  // "(" of them
  // "<" of a template's.
  void template_parameters(std::size_t open);
  void body(std::size_t open);  // "{" of it

  // An expression outside functions, which must be constant.
  void constant(std::size_t begin, std::size_t end);

 private:
  using Range = Declarator::Range;

  // Each returns where what it has read ends.
  std::size_t statement(std::size_t at, std::size_t end, int parent, bool in_block);
  std::size_t loop(std::size_t at, std::size_t end, int self);
  std::size_t branch(std::size_t at, std::size_t end, int self);
  void block(std::size_t open, int parent);
  void declaration(const DeclaredType& type, std::size_t begin, std::size_t end, int self,
                   std::size_t scope_end);
  void assembly(std::size_t begin, std::size_t end, int self);
  // ";" at or behind `at`, or `end`.
  std::size_t semicolon(std::size_t at, std::size_t end) const;
  int add_statement(StatementKind kind, std::size_t begin, int parent, bool in_block);
  void declare(std::string_view name, std::string type, std::size_t from, std::size_t to,
               std::size_t token, int statement);

  // All of a range as an expression of the statement; -1 where there is none.
  int expression(Range range, int statement);
  int conditional();
  int binary(int strength);
  int unary();
  int postfix(int inner);
  int launch(int kernel);
  int primary();
  int name();
  int lambda();
  void list(int self, std::size_t close);  // between brackets, divided by commas
  bool is_cast(std::size_t open) const;
  void template_arguments(std::size_t open, std::size_t close);
  int add(ExpressionKind kind, std::size_t begin, std::size_t end, std::size_t op,
          std::vector<int> parts);
  // The operator at the cursor with its number of tokens: ">" ">" is ">>".
  std::string_view binary_operator(std::size_t& tokens) const;
  bool is_variable(std::string_view name) const;

  const source::Syntax& x_syntax;
  DeviceFunction& x_function;
  // The expression that is being read.
  std::size_t x_at = 0, x_end = 0;
  int x_statement = -1;
  bool x_constant = false;
  int x_depth = 0;
};

}  // namespace attn_diag::repair

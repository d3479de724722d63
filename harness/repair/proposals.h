// What the operators of edits ask of a function, and where their edits go.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/repair/edit.h"
#include "harness/repair/types.h"

namespace attn_diag::repair {

class Proposals {
 public:
  Proposals(const Program& program, int file, const DeviceFunction& function,
            std::vector<Edit>& edits)
      : x_program(program), x_file(file), x_function(function), x_edits(edits) {}

  const Code& code() const { return *x_program.files[static_cast<std::size_t>(x_file)]; }
  int file() const { return x_file; }
  const DeviceFunction& function() const { return x_function; }
  const Program& program() const { return x_program; }
  const Expression& at(int expression) const {
    return x_function.expressions[static_cast<std::size_t>(expression)];
  }
  const Statement& statement(int i) const {
    return x_function.statements[static_cast<std::size_t>(i)];
  }
  int num_expressions() const { return static_cast<int>(x_function.expressions.size()); }
  int num_statements() const { return static_cast<int>(x_function.statements.size()); }
  std::string words(const Expression& e) const { return code().words(e.begin, e.end); }
  std::string words(int e) const { return words(at(e)); }
  std::string_view op(const Expression& e) const { return operator_of(code(), e); }

  std::string type(int expression) const {
    return type_of(x_program, code(), x_function, expression);
  }
  bool is_integer_value(int expression) const;
  bool is_count_value(int expression) const { return is_count(type(expression)); }
  bool is_real_value(int expression) const;
  const Variable* variable(std::string_view name, std::size_t token) const {
    return variable_at(x_function, name, token);
  }
  // Those that can be used there, each name once.
  std::vector<const Variable*> visible(std::size_t token) const;

  // Whether a token is the name of a variable or a function, not of a member, in what begins at `begin`.
  bool is_name(std::size_t token, std::size_t begin) const;
  std::set<std::string_view> names_in(std::size_t begin, std::size_t end) const;
  // Whether all that an expression of this function reads means something of the same type at another place.
  bool is_known_at(const Expression& e, std::size_t token) const;
  // Expressions of the function that are values of this kind and can stand at the place, each text once.
  std::vector<std::string> values_at(std::size_t token, bool real) const;

  // Whether something is stored to the expression, or its address is taken.
  bool is_target(int expression) const;
  bool is_callee(int expression) const;
  // Within the index of an array or a condition.
  bool in_index(int expression) const;

  // Tokens [begin, end), which are part of the expression, are replaced.
  void replace(std::string_view operation, int tier, int expression, std::size_t begin,
               std::size_t end, const std::string& text);
  // The whole expression is replaced.
  void replace(std::string_view operation, int tier, int expression, const std::string& text);
  // A whole statement is replaced, with what ends it; `on_one_line` where the text has several lines.
  void replace_statement(std::string_view operation, int tier, int statement,
                         const std::string& text, const std::string& on_one_line = {});
  // Two statements in a row, with what is written between them, are replaced.
  void replace_two(std::string_view operation, int tier, int first, int second,
                   const std::string& text, const std::string& on_one_line);
  // A statement before or behind one that stands in a block.
  void insert(std::string_view operation, int tier, int statement, bool before,
              const std::string& text);
  // Another text where a declaration ends, which at run time is the same as this statement behind it.
  void extend_declaration(std::string_view operation, int tier, int statement, std::size_t behind,
                          const std::string& text, const std::string& same);

 private:
  // `more`: of its size, what the text alone does not show.
  void add(Edit edit, int more = 0);
  int size_of_store(int statement) const;
  bool is_of_text(const Expression& e) const;  // its statement has a string
  bool in_macro(std::size_t token) const;
  int call_with(int expression) const;

  const Program& x_program;
  int x_file;
  const DeviceFunction& x_function;
  std::vector<Edit>& x_edits;
};

// A kind of small mistake in sources.
struct Operation {
  std::string_view name;
  void (*propose)(Proposals& to, std::string_view name);
};

std::span<const Operation> expression_operations();  // operators and operands
std::span<const Operation> value_operations();       // numbers, names, members
std::span<const Operation> call_operations();
std::span<const Operation> statement_operations();
std::span<const Operation> elsewhere_operations();
std::span<const Operation> index_operations();      // how an index is put together
std::span<const Operation> insertion_operations();  // statements that are missing

// Of a statement that is nothing but an assignment; else null.
const Expression* assignment_in(const Proposals& p, const Statement& s);

// The text of a range with names changed.
std::string renamed(const Proposals& p, std::size_t begin, std::size_t end,
                    const std::map<std::string_view, std::string_view>& names);

// A value that an expression can hold without parentheses: "a + b" is no factor.
std::string as_operand(const Proposals& p, int expression);

}  // namespace attn_diag::repair

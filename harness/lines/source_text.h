// The files that suspected lines stand in.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/lines/code_line.h"
#include "harness/lines/unused_names.h"
#include "harness/toolchain/source/token.h"

namespace attn_diag::lines {

// A loop, condition or other statement of several lines, by its first and its last.
struct Statement {
  int begin = 0, end = 0;
  bool loop = false;
  bool has(int line) const { return begin <= line && line <= end; }
};

// Lines of files, which are read when first asked for. Of what cannot be read: empty.
class SourceText {
 public:
  // The code of a line: white space where it has a comment, and within its strings.
  const std::string& line(const std::string& file, int number);
  // The code of all statements that have a part on the line, in one: "for (int i = 0; i < n; ++i)" where that stands in
  // several lines. Of a loop or condition its head alone.
  const std::string& statement(const std::string& file, int number);
  // Whether inline assembly stands on the line, or goes on there.
  bool has_assembly(const std::string& file, int number);
  // The line as it stands there.
  const std::string& written(const std::string& file, int number);
  // The same without blanks around it.
  std::string trimmed(const std::string& file, int number);
  // Whether the line has nothing but a comment.
  bool is_comment(const std::string& file, int number);
  // The last line of the loop, condition or other statement that begins at this one: that of its closing brace. The
  // line itself where it cannot be told.
  int end_of_statement(const std::string& file, int number);
  // The loops and conditions that a line is in, the outermost first.
  std::vector<Statement> statements_around(const std::string& file, int number);
  // Lines of the same function with a condition that a literal decides: "if (true)", "if (0) return;".
  std::vector<int> decided_by_literal(const std::string& file, int line);
  // Lines of the same function with a loop or condition of which the body is ";": "for (int i = 0; i < n; ++i);". Not of
  // what waits for another thread.
  std::vector<int> without_effect(const std::string& file, int line);
  // Where functions of the file that return nothing, are given something and do nothing with it have their empty bodies, of
  // those that the same function calls.
  std::vector<int> calls_without_effect(const std::string& file, int line);
  // What the same function computes and then does nothing with.
  std::vector<UnusedName> computed_for_nothing(const std::string& file, int line);
  // What the same function uses and never computes, beside what it does.
  std::vector<UnchangedName> never_computed(const std::string& file, int line);
  // Of the pipelines of the same function one of whose two calls is nowhere in the file, as consumer_wait() where there is
  // consumer_release(): where the block with the other one begins or ends, and what is missing.
  struct Unpaired {
    int line = 0;
    std::string missing, present;
  };
  std::vector<Unpaired> unpaired_calls(const std::string& file, int line);
  // Lines of conditions in the same function under which the variable, or an element of it, becomes as good as -inf:
  // "if (key >= n) s[i] = -INFINITY;".
  std::vector<int> masks_of(const std::string& file, int line, std::string_view variable);
  // The nearest line above that gives the variable a value, in the same function; 0: none.
  int assigned_above(const std::string& file, int line, const std::string& variable);
  static constexpr int kFurthest = 400;  // lines above
  // This line, or the nearest above, that declares the variable; 0: none.
  int declared_above(const std::string& file, int line, std::string_view variable);
  // The nearest line above that declares an array of this name in a struct: "float k[16][32], v[16][32];"; 0: none.
  int member_declared_above(const std::string& file, int line, std::string_view member);
  // Whether it says that the variable is an integer.
  bool is_integer(const std::string& file, int line, std::string_view variable);
  // In Python, the last line of code of the block that begins at this one; 0: there is none.
  int end_of_block(const std::string& file, int number);
  // In Python, the first line of code behind the block that begins at this one, or behind the line where none does; 0:
  // there is none.
  int behind_block(const std::string& file, int number);
  // Whether the file declares the variable as __shared__.
  bool is_shared(const std::string& file, std::string_view variable);
  // Lines that assign to an element of the variable, or hand on the address of one: "a[i] = x;", "a.tile[i] = x;", "copy(&a[i], b);".
  std::vector<int> lines_that_store(const std::string& file, std::string_view variable);
  // Where functions of the file end that have a parameter of this name and do nothing with it.
  std::vector<int> ends_of_functions_that_ignore(const std::string& file, std::string_view name);
  // The lines of code within the body of a function of the file; none: it has no such function.
  std::vector<int> lines_of_function(const std::string& file, std::string_view name);
  // "auto name = [&](int i) { ... };" around the line.
  struct Lambda {
    std::string name;
    std::vector<std::string> parameters;
    std::vector<int> calls;  // lines behind it, in the same function, that name it
  };
  std::vector<Lambda> lambdas_around(const std::string& file, int line);
  // The line of the brace of the function around this one; the line itself where there is none.
  int function_begin(const std::string& file, int line);
  // Lines of the function around this one that name the variable.
  std::vector<int> lines_that_name(const std::string& file, int line, std::string_view variable);
  // Lines with the "<<<" of a launch.
  std::vector<int> lines_that_launch(const std::string& file);
  // Whether the statement launches a kernel, perhaps in a lambda that it hands on: "DISPATCH(dim, [&] { f<<<...>>>(); });".
  bool launches_within(const std::string& file, int line);
  // The nearest line up to this one that declares the variable as a fragment of wmma: "fragment<matrix_b, ...> b;"; 0: none.
  int declares_fragment_above(const std::string& file, int number, std::string_view variable);
  // Whether threads wait for each other at a line behind `after` and before `before`; `of_block`: not of one warp alone.
  bool has_barrier(const std::string& file, int after, int before, bool of_block = false);
  // The last such line above this one in the same function, of all threads of a block; 0: there is none.
  int barrier_above(const std::string& file, int line);
  // The last line behind `after` and before `before` where a thread waits for its copies, for all or some; 0: none.
  int last_wait_for_copies(const std::string& file, int after, int before);
  // Near lines that call the same function as this one, with no barrier, no wait for copies and no commit of a group
  // between the two.
  std::vector<int> same_call_beside(const std::string& file, int line);
  // The first line below in the same function by which other blocks come to know how far this one is: an atomic operation, or a
  // barrier of the grid; 0: there is none.
  int tells_other_blocks(const std::string& file, int line);
  // What moves pointers on by blockIdx.y or blockIdx.z, or makes them so, up to this line in the same function: "q +=
  // blockIdx.y * n;". None where a line moves or makes this variable.
  struct Mover {
    std::string name;
    int line = 0;
  };
  std::vector<Mover> moved_by_block(const std::string& file, int line, std::string_view variable);
  // Whether the file has barriers of the whole grid.
  bool has_grid_barrier(const std::string& file);
  // Lines that wait for asynchronous copies and may leave some in flight: those above in the same function, the nearest first, then what comes behind
  // in the loops around the line.
  std::vector<int> waits_for_copies(const std::string& file, int line);
  // Where threads may return above a line of the same kernel, the nearest first: "return;", not of a lambda.
  std::vector<int> returns_above(const std::string& file, int line);
  // As has_barrier(), at a line that is passed on the way, whatever loops and conditions do.
  bool passes_barrier(const std::string& file, int after, int before, bool of_block = false);

 private:
  struct File {
    std::vector<std::string> written, code;
    std::string text;
    source::TokenList tokens;
    bool bodies_known = false;
    std::vector<std::pair<std::size_t, std::size_t>> statements;  // tokens, of C++ alone
    std::map<int, std::string> by_line;
  };
  using Tokens = std::vector<source::Token>;
  // Which asynchronous copies a call waits for; kSome: it may leave some in flight.
  enum class WaitsFor { kNone, kAll, kSome, kByArgument };
  static constexpr int kDepth = 4;  // of helpers that call helpers
  File& file_of(const std::string& file);
  // Finds the functions and macros of the file and of what it includes by name.
  void note_bodies(const std::string& file);
  void note_included(const std::string& by, const std::string& name);
  const std::vector<Tokens>* bodies_of(std::string_view name) const;  // null: not in these sources
  bool is_barrier_at(const Tokens& tokens, std::size_t i, int depth) const;
  bool tells_at(const Tokens& tokens, std::size_t i, int depth) const;
  // Whether it is so anywhere in the body of the function that is called there.
  using IsAt = bool (SourceText::*)(const Tokens& tokens, std::size_t i, int depth) const;
  bool in_body(const Tokens& tokens, std::size_t i, int depth, IsAt is_at) const;
  bool waits_at(const Tokens& tokens, std::size_t i, bool of_block) const;
  WaitsFor waits_for(const Tokens& tokens, std::size_t i, int depth) const;

  std::map<std::string, File> x_files;
  std::map<std::string, std::vector<Tokens>, std::less<>> x_bodies;
};

}  // namespace attn_diag::lines

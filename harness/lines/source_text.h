// What a line of the source says, as far as it can be at fault: a loop "for (int j = begin; j < end; ++j)" computes
// nothing, so that what is wrong with its range was made where begin and end were.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/toolchain/source/token.h"

namespace attn_diag::lines {

// Whether there is the name of a variable, and not of a function or a member.
bool is_variable(const std::vector<source::Token>& tokens, std::size_t i);
// Loops are those of C++, or "for j in range(begin, end, step)" of Python.
bool is_loop(std::string_view line);
// Whether the line has a for loop that begins at 0 or a variable, goes on below a variable, and takes steps of 1 or a
// variable; of a number where steps may be of any size.
bool is_plain_loop(std::string_view line, bool any_step);
// Whether the line has a for loop that counts up from another number than 0: "for (int j = 1; j < n; ++j)".
bool begins_late(std::string_view line);
// Whether the line has a for loop that goes up to its limit, and not only below it: "for (int j = 0; j <= n; ++j)".
bool goes_up_to(std::string_view line);
// The variables behind a minus of the line: m of "p = exp(s[j] - m);".
std::vector<std::string> subtracted_names(std::string_view line);
// What the condition of a for loop of the line compares its counter with: n of "for (int i = 0; i < n; ++i)".
std::vector<std::string> loop_limits(std::string_view line);
// Whether the line has a guard that a limit itself passes: "if (key <= keys)", or "if (row > rows) return;".
bool lets_the_end_through(std::string_view line);
// Whether the line declares the variable: as an integer, or as something else; nullopt: it does not declare it.
std::optional<bool> declares_integer(std::string_view line, std::string_view variable);
// Whether the line assigns the smaller of two real numbers to the variable.
bool takes_minimum(std::string_view line, std::string_view variable);
// Whether the line gives the variable, or an element of it, by a choice that may be this number: "p = in ? x : 0.f;".
// An empty name: any variable.
bool may_choose(std::string_view line, std::string_view variable, double number);
// Whether a choice of the line depends on one name alone: "x = in ? k[i] : 0.f;".
bool chooses_by_name(std::string_view line);
// The name that an element of an array is given, and nothing else: "x" of "tile[i] = x;". Empty: there is none.
std::string stored_name(std::string_view line);
// Whether the line has variable[...] and nothing within the brackets but names and numbers; or load(variable) of
// Triton, or store(variable, x).
bool is_plain_subscript(std::string_view line, std::string_view variable);
// The names within the brackets behind the variable, in order: i, d and width of "sK[i / width][d]"; none where the
// line does not index it.
std::vector<std::string> subscript_names(std::string_view line, std::string_view variable);
// Whether that subscript of the variable, from 0, adds a number or takes one away: 1 of "tile[s][j - 1]".
bool offsets_subscript(std::string_view line, std::string_view variable, std::size_t number);
// Whether the line has the variable plus a name as an argument: "memcpy_async(block, tile, k + at, bytes)".
bool is_plain_offset(std::string_view line, std::string_view variable);
// Whether the line is where a kernel begins, and no statement of it: "__global__ void attend(", or a brace alone.
bool begins_kernel(std::string_view line);
// Whether the line asserts something, and does nothing else.
bool is_assertion(std::string_view line);
// Whether the line has the variable in an argument that does no more than add names.
bool is_plain_argument(std::string_view line, std::string_view variable);
// Whether the line launches a kernel.
bool launches(std::string_view line);
// The names in what a launch says of the size of dynamic shared memory: "n" of "k<<<grid, block, n * 4>>>(a)"; nullopt: it
// says nothing of it.
std::optional<std::vector<std::string>> shared_size_names(std::string_view launch);
// Whether the line has one of the names.
bool has_name(std::string_view line, const std::vector<std::string>& names);
// The variables within the parentheses of an if: a and b of "if (a < b) c = x;".
std::vector<std::string> tested_names(std::string_view line);
// The names that the line gives a value: p and q of "float p = f(x), q = 0;".
std::vector<std::string> assigned_names(std::string_view line);
// Whether the line assigns more to the variable than one name or number: "end = min(n, begin + 4)", "q += n".
bool computes(std::string_view line, std::string_view variable);

// A loop, condition or other statement of several lines, by its first and its last.
struct Statement {
  int begin = 0, end = 0;
  bool loop = false;
  bool has(int line) const { return begin <= line && line <= end; }
};

// The variables in each argument of the first call of a function whose name has this part.
std::vector<std::vector<std::string>> arguments_of(std::string_view line, std::string_view part);
// The names of which the line stores to an element: "a" of "a[i] = b[i];".
std::vector<std::string> stored_arrays(std::string_view line);
// What stands behind "variable =", of names that are no calls; and whether an index or an addition is among it.
std::vector<std::string> made_of(std::string_view line, std::string_view variable, bool& moves);

// Lines of files, which are read when first asked for. Of what cannot be read: empty.
class SourceText {
 public:
  // The code of a line: white space where it has a comment, and within its strings.
  const std::string& line(const std::string& file, int number);
  // The code of all statements that have a part on the line, in one: "for (int i = 0; i < n; ++i)" where that stands in
  // several lines. Of a loop or condition its head alone.
  const std::string& statement(const std::string& file, int number);
  // The line as it stands there.
  const std::string& written(const std::string& file, int number);
  // Whether the line has nothing but a comment.
  bool is_comment(const std::string& file, int number);
  // The last line of the loop, condition or other statement that begins at this one: that of its closing brace. The
  // line itself where it cannot be told.
  int end_of_statement(const std::string& file, int number);
  // The loops and conditions that a line is in, the outermost first.
  std::vector<Statement> statements_around(const std::string& file, int number);
  // The nearest line above that gives the variable a value, in the same function; 0: none.
  int assigned_above(const std::string& file, int line, const std::string& variable);
  static constexpr int kFurthest = 400;  // lines above
  // Whether this line, or the nearest above that declares the variable, says that it is an integer.
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
  // Lines with the "<<<" of a launch.
  std::vector<int> lines_that_launch(const std::string& file);
  // Lines that call a function whose name has this part, with the variable in the first argument: those above `number`,
  // the nearest first, then those below.
  std::vector<int> lines_that_call(const std::string& file, int number, std::string_view part,
                                   std::string_view variable);
  // Whether threads wait for each other at a line behind `after` and before `before`; `of_block`: not of one warp alone.
  bool has_barrier(const std::string& file, int after, int before, bool of_block = false);
  // Lines that wait for asynchronous copies and may leave some in flight: those above in the same function, the nearest first, then what comes behind
  // in the loops around the line.
  std::vector<int> waits_for_copies(const std::string& file, int line);
  // Where threads may return above a line of the same kernel, the nearest first: "return;", not of a lambda.
  std::vector<int> returns_above(const std::string& file, int line);
  // As has_barrier(), at a line that is passed on the way, whatever loops and conditions do.
  bool passes_barrier(const std::string& file, int after, int before);

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
  WaitsFor waits_for(const Tokens& tokens, std::size_t i, int depth) const;

  std::map<std::string, File> x_files;
  std::map<std::string, std::vector<Tokens>, std::less<>> x_bodies;
};

}  // namespace attn_diag::lines

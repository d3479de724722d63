// What a line of the source says, as far as it can be at fault: a loop "for (int j = begin; j < end; ++j)" computes
// nothing, so that what is wrong with its range was made where begin and end were.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/toolchain/source/token.h"

namespace attn_diag::lines {

// Whether there is the name of a variable, and not of a function or a member.
bool is_variable(const std::vector<source::Token>& tokens, std::size_t i);
// Loops are those of C++, or "for j in range(begin, end, step)" of Python.
bool is_loop(std::string_view line);
// Whether the line has a for loop that declares the variable: "for (int i = 0; i < n; ++i)".
bool declares_counter(std::string_view line, std::string_view variable);
// Whether the line has a for loop that begins at 0 or a variable, goes on below a variable, and takes steps of 1 or a
// variable; of a number where steps may be of any size.
bool is_plain_loop(std::string_view line, bool any_step);
// Whether the line has a for loop whose counter is halved or doubled in each step, and whether that is done as it mostly
// is, down to 1 or up to a whole number: "for (int w = n / 2; w > 0; w >>= 1)", "for (int w = 1; w < n; w <<= 1)".
// nullopt: it is no such loop.
std::optional<bool> halves_as_usual(std::string_view line);
// The last argument of the first shuffle on this line, where it is one name or number: "8" of
// "v += __shfl_down_sync(~0u, v, 8);". Empty: there is none.
std::string shuffle_lane(std::string_view line);
// The same as a number; 0: it is none.
int shuffle_step(std::string_view line);
// Whether the line has a for loop that counts up from another number than 0: "for (int j = 1; j < n; ++j)".
bool begins_late(std::string_view line);
// Whether the line has a for loop that goes up to its limit, and not only below it: "for (int j = 0; j <= n; ++j)".
bool goes_up_to(std::string_view line);
// The variables behind a minus of the line: m of "p = exp(s[j] - m);".
std::vector<std::string> subtracted_names(std::string_view line);
// The variables of which the line subtracts something: m of "alpha = exp(m - m_new);".
std::vector<std::string> minuends(std::string_view line);
// The variables whose member functions the line calls: pipe of "pipe.consumer_wait();".
std::vector<std::string> objects_of_calls(std::string_view line);
// The functions that the line calls: f of "x = f(y);".
std::vector<std::string> called_names(std::string_view line);
// Whether the line gives the variable a number less 1: "last = min(n, 32) - 1;".
bool computes_last(std::string_view line, std::string_view variable);
// What the condition of a for loop of the line compares its counter with: n of "for (int i = 0; i < n; ++i)".
std::vector<std::string> loop_limits(std::string_view line);
// Whether the line has a guard that a limit itself passes: "if (key <= keys)", or "if (row > rows) return;".
bool lets_the_end_through(std::string_view line);
// Of a guard that compares two sums of names: the names on the side that is the larger one, or as large, of what is let
// through, and those on the other: key and n of "if (key < n) return;" and of "if (key >= n) {". Else nothing.
std::pair<std::vector<std::string>, std::vector<std::string>> larger_of_guard(
    std::string_view line);
// Whether the variable is given a quotient of integers that nothing rounds up: "n = len / 32;", not "(len + 31) / 32".
bool rounds_down(std::string_view line, std::string_view variable);
// Whether the line declares the variable: as an integer, or as something else; nullopt: it does not declare it.
std::optional<bool> declares_integer(std::string_view line, std::string_view variable);
// Whether the line declares the variable as float, double or half, by the names that these have in C++ and CUDA.
bool declares_real(std::string_view line, std::string_view variable);
// Whether the line assigns the smaller of two real numbers to the variable.
bool takes_minimum(std::string_view line, std::string_view variable);
// Whether the line gives the variable, or the first elements of it, plus infinity: "float m[2] = {INFINITY, -INFINITY};".
bool begins_infinite(std::string_view line, std::string_view variable);
// Whether the line gives the variable, or an element of it, by a choice that may be this number: "p = in ? x : 0.f;".
// An empty name: any variable.
bool may_choose(std::string_view line, std::string_view variable, double number);
// The one name on which a choice of the line depends: "in" of "x = in ? k[i] : 0.f;". Empty: it depends on more, or
// there is none.
std::string chosen_by(std::string_view line);
// The name that alone stands within the brackets of that number, of an element of the array: "x" of 1 in "tile[y][x]".
// Empty: something else stands there.
std::string subscript_name(std::string_view line, std::string_view array, std::size_t number);
// The name that an element of an array is given, and nothing else: "x" of "tile[i] = x;". Empty: there is none.
std::string stored_name(std::string_view line, std::string_view array = {});
// The arrays that the line divides by an element of: "l" of "o[i] / state.l[r]".
std::vector<std::string> divisor_arrays(std::string_view line);
// Whether the line has variable[...] and nothing within the brackets but names and numbers; or load(variable) of
// Triton, or store(variable, x).
bool is_plain_subscript(std::string_view line, std::string_view variable);
// The names within the brackets behind the variable, in order: i, d and width of "sK[i / width][d]"; none where the
// line does not index it.
std::vector<std::string> subscript_names(std::string_view line, std::string_view variable);
// The variables that the line multiplies by something, or something by, within brackets: row of "q[base + row * n + 1]".
std::vector<std::string> multiplied_in_subscripts(std::string_view line);
// The variables that are added there as they are: base of the same.
std::vector<std::string> added_in_subscripts(std::string_view line);
// Whether the line makes the variable, a pointer, of others: "const half* src = base + row * n;".
bool makes_pointer(std::string_view line, std::string_view variable);
// The names that the line indexes: sK and m of "sK[i] * m[j]".
std::vector<std::string> indexed_names(std::string_view line);
// Those of them that are members: v of "from.v[j]".
std::vector<std::string> indexed_members(std::string_view line);
// Of "v[(head * n + j) * width + d]" head, n and j: the sum that a width is multiplied by says which row it is.
std::vector<std::string> row_names(std::string_view line, std::string_view array);
// "[n][d+8]" of the array where a line names it first, without blanks.
std::string extents_of(std::string_view line, std::string_view array);
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
// Whether it has a number of blocks that is divided, and not rounded up: "k<<<n / 32, 32>>>(a)".
bool rounds_blocks_down(std::string_view launch);
// Whether the line has one of the names.
bool has_name(std::string_view line, const std::vector<std::string>& names);
// The variables that the test of the line compares as they are, by < or >: j and i of "if (j > i) continue;" and of
// "s = (j <= i) ? s : 0;"; none where it computes something, as "j > i + 1" does.
std::vector<std::string> plainly_compared(std::string_view line);
// The variables within the parentheses of an if: a and b of "if (a < b) c = x;".
std::vector<std::string> tested_names(std::string_view line);
// The variables of an expression: a and b of "a + f(b)".
std::vector<std::string> variables_of(std::string_view expression);
// Whose bit is all that is tested: "seen" of "if (!(seen >> threadIdx.x & 1))". Else empty.
std::string tested_bits(std::string_view line);
// The names that the line gives a value: p and q of "float p = f(x), q = 0;".
std::vector<std::string> assigned_names(std::string_view line);
// Whether the line assigns more to the variable than one name or number: "end = min(n, begin + 4)", "q += n".
bool computes(std::string_view line, std::string_view variable);

// The variables in each argument of the first call of a function whose name has this part.
std::vector<std::vector<std::string>> arguments_of(std::string_view line, std::string_view part);
// The names of which the line stores to an element: "a" of "a[i] = b[i];".
std::vector<std::string> stored_arrays(std::string_view line);
// What stands behind "variable =", of names that are no calls; and whether an index or an addition is among it.
std::vector<std::string> made_of(std::string_view line, std::string_view variable, bool& moves);

}  // namespace attn_diag::lines

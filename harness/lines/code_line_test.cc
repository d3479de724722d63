#include "harness/lines/code_line.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attn_diag::lines {

TEST_CASE("a minimum, and a first value that is infinite, may be those of an element") {
  CHECK(takes_minimum("red[tid] = fminf(red[tid], red[tid + off]);", "red"));
  CHECK_FALSE(takes_minimum("red[tid] = fmaxf(red[tid], x);", "red"));
  CHECK(begins_infinite("float m[2] = {INFINITY, -INFINITY};", "m"));
  CHECK(begins_infinite("float l = 0.f, best = FLT_MAX;", "best"));
  CHECK_FALSE(begins_infinite("float m[2] = {-INFINITY, -INFINITY};", "m"));
  CHECK_FALSE(begins_infinite("float m = -INFINITY, l = INFINITY;", "m"));
}

TEST_CASE("what is compared is a variable, what has template arguments a function") {
  using Names = std::vector<std::string>;
  CHECK(tested_names("if (key < n && at<2>(key) > first) x = 0;") ==
        Names{"key", "n", "key", "first"});
  bool moves = false;
  CHECK(made_of("const bool keep = key < n && (all || key <= row);", "keep", moves) ==
        Names{"key", "n", "all", "key", "row"});
  CHECK(made_of("float m = f(a, b), l = c, o = d;", "m", moves) == Names{"a", "b"});
  CHECK(made_of("float m = f(a, b), l = c, o = d;", "l", moves) == Names{"c"});
}

TEST_CASE("what has parentheses behind it is called, unless the language says otherwise") {
  using Names = std::vector<std::string>;
  CHECK(called_names("if (lane == 0) m = f(g(x));") == Names{"f", "g"});
  CHECK(called_names("for (;;) return (x);").empty());
}

TEST_CASE("within brackets a variable may be multiplied") {
  using Names = std::vector<std::string>;
  CHECK(multiplied_in_subscripts("x = n * q[base + (long)row * kDim + col] * m;") ==
        Names{"row", "kDim"});
  CHECK(added_in_subscripts("x = n * q[base + (long)row * kDim + col] * m;") ==
        Names{"base", "col"});
  CHECK(added_in_subscripts("x = p[2 + d] * q[at + (d ^ 1)];") == Names{"d", "at"});
  CHECK(added_in_subscripts("[=](int i) { x[d] = i; }") == Names{"d"});
  CHECK(multiplied_in_subscripts("x = q[base + col] * m;").empty());
}

TEST_CASE("of an element one index may be a name alone") {
  CHECK(subscript_name("*(int4*)&tile[y][x] = in ? a[i] : zero;", "tile", 1) == "x");
  CHECK(subscript_name("*(int4*)&tile[y][x] = in ? a[i] : zero;", "tile", 0) == "y");
  CHECK(subscript_name("s += tile[stage][j + 1][d];", "tile", 1).empty());
  CHECK(subscript_name("s += tile[stage][j + 1][d];", "tile", 2) == "d");
  CHECK(subscript_name("s += tile[d];", "tile", 1).empty());
  CHECK(subscript_name("s += tile[d];", "other", 0).empty());
}

TEST_CASE("of what a guard lets through one side is the larger one") {
  using Sides = std::pair<std::vector<std::string>, std::vector<std::string>>;
  const Sides beyond = {{"key"}, {"n"}}, within = {{"n"}, {"key"}};
  CHECK(larger_of_guard("if (key < n) return;") == beyond);
  CHECK(larger_of_guard("if (key >= n) {") == beyond);
  CHECK(larger_of_guard("if (!(key < n)) x = 0;") == beyond);
  CHECK(larger_of_guard("if (!(key >= n)) continue;") == beyond);
  CHECK(larger_of_guard("if (n <= key) s += x;") == beyond);
  CHECK(larger_of_guard("if (key >= n) return;") == within);
  CHECK(larger_of_guard("if (key < n) {") == within);
  // With a number, or with more than one comparison, it says nothing.
  CHECK(larger_of_guard("if (lane >= 16) x = 0;") == Sides{});
  CHECK(larger_of_guard("if (key >= begin && key < n) x = 0;") == Sides{});
  CHECK(larger_of_guard("s += x;") == Sides{});
}

TEST_CASE("what a line ends with is computed in the next") {
  CHECK(computes("const bool masked =", "masked"));
  CHECK_FALSE(computes("const bool masked = other;", "masked"));
  CHECK_FALSE(computes("masked", "masked"));
  CHECK_FALSE(computes("const int n = lengths[b];", "n"));
  CHECK(computes("const int n = lengths[b] + 1;", "n"));
  CHECK(computes("const int n = lengths[b + 1];", "n"));
}

TEST_CASE("where a kernel begins is no statement of it") {
  CHECK(begins_kernel("__global__ void __launch_bounds__(32)"));
  CHECK(begins_kernel("  {"));
  CHECK_FALSE(begins_kernel("if (attends) {"));
  CHECK(is_assertion("  assert(n % 4 == 0);"));
  CHECK_FALSE(is_assertion("if (n > 0) assert(n % 4 == 0);"));
}

TEST_CASE("the variables that an if tests") {
  CHECK(tested_names("if (col >= p.n || (causal && f(col) > row)) s[i] = -INFINITY;") ==
        std::vector<std::string>{"col", "causal", "col", "row"});
  CHECK(tested_names("for (int i = 0; i < n; ++i) s = 0;").empty());
  CHECK(tested_bits("if (!(seen >> (threadIdx.x % 32) & 1)) continue;") == "seen");
  CHECK(tested_bits("if (active) {").empty());
  CHECK(tested_bits("if (lane == 0) s = 0;").empty());
  CHECK(tested_bits("if (a && b) s = 0;").empty());
}

TEST_CASE("what a launch says of the size of shared memory") {
  using Names = std::vector<std::string>;
  CHECK(shared_size_names("k<4><<<dim3(n, m), block, bytes>>>(q, k);") == Names{"bytes"});
  CHECK(shared_size_names("k<<<grid, f(a, b), 2 * (rows + cols) * sizeof(float), s>>>(q);") ==
        Names{"rows", "cols"});
  CHECK(shared_size_names("k<<<1, 2, 64>>>(q);") == Names{});
  CHECK_FALSE(shared_size_names("k<<<grid, block>>>(q, k, v);").has_value());
}

TEST_CASE("a launch whose number of blocks is rounded down") {
  CHECK(rounds_blocks_down("k<<<n / 32, 32>>>(a);"));
  CHECK(rounds_blocks_down("k<4><<<dim3(heads, (n * m) / kRows), dim3(32, 4), 0, s>>>("));
  CHECK_FALSE(rounds_blocks_down("k<<<dim3((n + 31) / 32, heads), dim3(32, n / 2)>>>(n / 2);"));
  CHECK_FALSE(rounds_blocks_down("k<<<grid, 32, n / 4>>>(a);"));
  CHECK_FALSE(rounds_blocks_down("x = n / 32;"));
}

TEST_CASE("the names that a line gives a value") {
  CHECK(assigned_names("const float p0 = ex2(s0 - m), p1 = ex2(s1);") ==
        std::vector<std::string>{"p0", "p1"});
  CHECK(assigned_names("x += y; a[i] = y == z;").empty());
  CHECK(has_name("if (two) o[d] += p1 * v[d];", {"p0", "p1"}));
  CHECK_FALSE(has_name("o[d] += p10;", {"p1"}));
}

TEST_CASE("a loop over a range that others computed is plain") {
  for (const char* line :
       {"for (int j = 0; j < n; ++j) {", "for (int j = begin; j < end; j++) sum += x[j];",
        "for (int at = 0; at < limits.end; at += step) {", "for (; j < last; ++j)"})
    CHECK(is_plain_loop(line, false));
  CHECK(is_plain_loop("for (int at = 0; at < n; at += 32) {", true));
  CHECK_FALSE(is_plain_loop("for (int at = 0; at < n; at += 32) {", false));
  for (const char* line :
       {"for (int j = 1; j < n; ++j) {", "for (int j = 0; j <= n; ++j)",
        "for (int j = 0; j < n - 1; ++j)", "for (int j = 4 * split; j < n; ++j)",
        "for (int j = 0; j < min(n, 4); ++j)", "for (int x = n; x > 0; x /= 2)",
        "for (int j = 0; j < n; j += 2 * k)", "while (j < n)", "for (int j = 0;",
        "for (int j = first, n = 0; j < last; j += step, ++n)", "for (auto x : y)"})
    CHECK_FALSE(is_plain_loop(line, true));
}

TEST_CASE("a loop that leaves its first steps out begins late") {
  CHECK(begins_late("for (int j = 1; j < n; ++j)"));
  CHECK(begins_late("for (int j = 2; j <= its.n; j += 2) {"));
  for (const char* line :
       {"for (int j = 0; j < n; ++j)", "for (int x = 16; x > 0; x /= 2)", "int j = 1;",
        "for (int j = first; j < n; ++j)", "for (int j = 1 + i; j < n; ++j)", "for (int j = 1;"})
    CHECK_FALSE(begins_late(line));
}

TEST_CASE("a choice that may be a number, and what is stored as it is") {
  CHECK(may_choose("float p = key < n ? expf(s - m) : 1.f;", "p", 1));
  CHECK(may_choose("p[j] = mask(i, j) ? 0.5 : x;", "p", 0.5));
  CHECK(may_choose("s[i][j] = in ? x * y : -1.f;", "", -1));
  for (const char* line :
       {"float p = key < n ? expf(s - m) : 0.f;", "float q = in ? x : 1.f;", "p = 1.f;",
        "p = in ? x : y + 1.f;", "p += in ? x : 1.f;", "if (p == 1) x = in ? y : 1;"})
    CHECK_FALSE(may_choose(line, "p", 1));
  CHECK(stored_name("tile[i][c] = x;") == "x");
  CHECK(stored_name("t.S[i * n] = score; m = 0;") == "score");
  CHECK(stored_name("t.m[r] = top; t.l[r] = sum;", "l") == "sum");
  CHECK(stored_name("t.m[r] = top; l = t.m[r];", "l").empty());
  CHECK(divisor_arrays("x = f(t.o[i] / t.l[i / n]) / n;") == std::vector<std::string>{"l"});
  for (const char* line : {"tile[i] = x + 1;", "x = y;", "tile[i] = f(x);", "tile[i] += x;"})
    CHECK(stored_name(line).empty());
}

TEST_CASE("the names within the brackets of an array") {
  using Names = std::vector<std::string>;
  CHECK(subscript_names("s += a[i] * b[i / width][d + i];", "b") == Names{"i", "width", "d"});
  CHECK(subscript_names("s += a[4] * b[i];", "a").empty());
  for (const char* const usual : {"for (int w = n / 2; w > 0; w >>= 1) {",
                                  "for (int w = 16; w; w /= 2)", "for (w = 16; w >= 1; w >>= 1)"})
    CHECK(halves_as_usual(usual) == std::optional(true));
  for (const char* const odd :
       {"for (int w = n / 2; w > 1; w >>= 1) {", "for (int w = 16; w > 0; w >>= 2)"})
    CHECK(halves_as_usual(odd) == std::optional(false));
  CHECK(halves_as_usual("for (int w = 1; w < n; w <<= 1) x += y;") == std::optional(true));
  CHECK(halves_as_usual("for (int w = 1; w < n / 2; w *= 2) x += y;") == std::optional(false));
  CHECK(halves_as_usual("for (int w = 0; w < n; w += 2)") == std::nullopt);
  CHECK(halves_as_usual("w >>= 1;") == std::nullopt);
  CHECK(shuffle_step("v += __shfl_down_sync(m, f(v, 2), 8);") == 8);
  CHECK(shuffle_step("v += __shfl_down_sync(m, v, w);") == 0);
  CHECK(shuffle_step("v += 8;") == 0);
  CHECK(shuffle_lane("l = l * a + warp.shfl(31, sums);") == "sums");
  CHECK(makes_pointer("const half* const src = q + row * n;", "src"));
  for (const char* const other : {"const half* src = q;", "int src = q + 1;", "half* q = src + 1;"})
    CHECK_FALSE(makes_pointer(other, "src"));
  CHECK(declares_real("  const float p = f(x, y), sums = 0;", "sums"));
  CHECK(declares_real("__device__ float add(float x, int n) {", "x"));
  CHECK_FALSE(declares_real("__device__ float add(float x, int n) {", "n"));
  CHECK_FALSE(declares_real("Index lane = 0;", "lane"));
  CHECK_FALSE(declares_real("float x = lane;", "lane"));
  CHECK(shuffle_lane("v += __shfl_sync(m, v, w / 2);").empty());
  CHECK(plainly_compared("if (j > i || j >= n) s = 0;") == Names{"j", "i", "j", "n"});
  CHECK(plainly_compared("float s = (j <= i) ? f(x[j]) : 0;") == Names{"j", "i"});
  for (const char* const other : {"if (j > i + 1) s = 0;", "if (seen) s = 0;", "s = j <= i;",
                                  "s = j < n[0] ? s : 0;", "if (j == i) s = j;"})
    CHECK(plainly_compared(other).empty());
  CHECK(indexed_names("s += a[b[i]] * f(c)[j];") == Names{"a", "b"});
  CHECK(indexed_members("s += from.k[j] * to->v[0] + q[j] + x.y;") == Names{"k", "v"});
  CHECK(subscript_names("s += a[i];", "b").empty());
  CHECK(subscript_names("(&a[0][0])[i] = b[j];", "a") == Names{"i"});
  CHECK(is_plain_subscript("(&a[0][0])[i] = x;", "a"));
  CHECK_FALSE(is_plain_subscript("(&a[0][0])[i + n] = x;", "a"));
  CHECK(is_loop("for (int j = 0; j < n; ++j) s += x[j];"));
  CHECK(is_loop("for j in range(0, n):"));
  CHECK_FALSE(is_loop("while (j < n)"));
}

TEST_CASE("which quotients are rounded down") {
  CHECK(rounds_down("const int tiles = len / kTile;", "tiles"));
  CHECK(rounds_down("const int chunk = kSplit ? len / splits : len;", "chunk"));
  CHECK(rounds_down("int a = 0, tiles = pages >> log2;", "tiles"));
  CHECK_FALSE(rounds_down("const int tiles = (len + kTile - 1) / kTile;", "tiles"));
  CHECK_FALSE(rounds_down("const int tiles = len / kTile + (len % kTile != 0);", "tiles"));
  CHECK_FALSE(rounds_down("const int tiles = len / kTile;", "len"));
  CHECK_FALSE(rounds_down("int tiles = n, chunk = 4;", "tiles"));
  CHECK_FALSE(rounds_down("template <class T = Tile<32>", "T"));
  CHECK_FALSE(rounds_down("/", "tiles"));
  CHECK_FALSE(rounds_down("", "tiles"));
}

TEST_CASE("a loop that goes up to its limit") {
  CHECK(offsets_subscript("x += tile[1][(j - 1)][i * 8 + lane];", "tile", 1));
  CHECK_FALSE(offsets_subscript("x += tile[1][(j - 1)][i * 8 + lane];", "tile", 2));
  CHECK_FALSE(offsets_subscript("x += tile[1][j][i];", "tile", 1));
  CHECK(subtracted_names("p = __expf(s[j] - m_new), a = exp2f(m - max(x));") ==
        std::vector<std::string>{"m_new"});
  CHECK(chosen_by("s[i / d] = in ? k[at + i] : 0.f;") == "in");
  CHECK(chosen_by("s[i] = row < n ? k[at + i] : 0.f;").empty());
  CHECK(loop_limits("for (int i = t * 4; i < n + m; i += k)") ==
        std::vector<std::string>{"n", "m"});
  CHECK(loop_limits("i < n;").empty());
  CHECK(goes_up_to("for (int j = 0; j <= n; ++j)"));
  CHECK(goes_up_to("for (int j = 0; j < 4 && first + j <= n; ++j) {"));
  for (const char* line : {"for (int j = 0; j < n; ++j) if (x <= y)", "while (j <= n)",
                           "for (int j = i <= n; j < 4; ++j)", "for (int j = 0;"})
    CHECK_FALSE(goes_up_to(line));
  for (const char* line : {"if (key <= keys) {", "if (row > rows) return;",
                           "} else if (a <= b) x = 1;", "if (seen >> 1 > n) continue;"})
    CHECK(lets_the_end_through(line));
  for (const char* line : {"if (key < keys) {", "if (row >= rows) return;",
                           "if (row <= rows) return;", "if (row > rows) {", "while (a <= b)",
                           "if (a < b) x = c <= d;", "if (!(seen >> lane & 1)) continue;"})
    CHECK_FALSE(lets_the_end_through(line));
  CHECK(objects_of_calls("pipe.consumer_wait(); at->f(x.y, g(z));") ==
        std::vector<std::string>{"pipe", "at"});
  CHECK(computes_last("const int last = min(n, first + 32) - 1;", "last"));
  CHECK(computes_last("int first = 0, last = n - 1, next;", "last"));
  for (const char* line : {"last = n - 2;", "last = n;", "last = (n - 1) / 2;", "first = n - 1;"})
    CHECK_FALSE(computes_last(line, "last"));
}

TEST_CASE("loops and loads of Python") {
  CHECK(is_plain_loop("for start in range(0, seqlen, BLOCK):", false));
  CHECK(is_plain_loop("for j in tl.range(first, end):", false));
  CHECK_FALSE(is_plain_loop("for j in range(first, end, 2):", false));
  CHECK(is_plain_loop("for j in range(first, end, 2):", true));
  CHECK_FALSE(is_plain_loop("for j in range(first, end + 1):", true));
  CHECK_FALSE(is_plain_loop("for j in range(1, end):", true));
  CHECK(begins_late("for j in range(1, end):"));
  CHECK_FALSE(begins_late("for j in range(0, end):"));
  CHECK_FALSE(begins_late("for j in range(end):"));
  CHECK(is_plain_subscript("k = tl.load(k_ptrs, mask=inside, other=0.0)", "k_ptrs"));
  CHECK_FALSE(is_plain_subscript("k = tl.load(k_ptr + offset, mask=inside)", "k_ptr"));
}

TEST_CASE("who takes the smaller one") {
  CHECK(takes_minimum("const float m_new = fminf(m, s), alpha = x;", "m_new"));
  CHECK(takes_minimum("m = cuda::std::min(m, s);", "m"));
  CHECK(takes_minimum("m_ij = tl.minimum(m_i, tl.max(qk, 1))", "m_ij"));
  CHECK_FALSE(takes_minimum("const float m_new = fmaxf(m, s), last = fminf(a, b);", "m_new"));
  CHECK_FALSE(takes_minimum("f(fminf(m, s));", "m"));
}

TEST_CASE("who is declared as an integer") {
  CHECK(declares_integer("const int last = min(first + 4, n);", "last") == true);
  CHECK(declares_integer("int m = 0, last = min(first + 4, n);", "last") == true);
  CHECK(declares_integer("for (size_t j = 0, last = min(a, b); j < last; ++j)", "last") == true);
  CHECK(declares_integer("const float m = 0.f, last = fminf(a, b);", "last") == false);
  CHECK(declares_integer("void f(float x, int last)", "last") == true);
  CHECK(declares_integer("void f(int last, float x)", "x") == false);
  CHECK_FALSE(declares_integer("last = min(first + 4, n);", "last"));
  CHECK_FALSE(declares_integer("f(first, last);", "last"));
  CHECK_FALSE(declares_integer("return last;", "last"));
  CHECK_FALSE(declares_integer("auto last = min(a, b);", "last"));
}

TEST_CASE("an index of names alone is plain") {
  CHECK(is_plain_subscript("s += q[d] * k[j * n + d];", "q"));
  CHECK_FALSE(is_plain_subscript("s += q[d] * k[j * n + d];", "k"));
  CHECK_FALSE(is_plain_subscript("s += q[d];", "k"));
  CHECK(is_plain_subscript("tile[i][threadIdx.x] = 0;", "tile"));
  CHECK_FALSE(is_plain_subscript("x = a[b[i + 1]];", "a"));
  CHECK_FALSE(is_plain_subscript("x = \"a[", "a"));
}

TEST_CASE("an offset of a name alone is plain") {
  CHECK(is_plain_offset("cuda::memcpy_async(block, tile, k + at, bytes, pipe);", "k"));
  CHECK(is_plain_offset("copy(k + its.at)", "k"));
  CHECK_FALSE(is_plain_offset("copy(k + at * 4, n)", "k"));
  CHECK_FALSE(is_plain_offset("copy(k + 4, n)", "k"));
  CHECK_FALSE(is_plain_offset("copy(q + at, n)", "k"));
  CHECK(is_plain_offset("x = __ldg(p.k + at + i);", "p"));
  CHECK(is_plain_offset("x = __ldg(p.k + at + i);", "k"));
  CHECK_FALSE(is_plain_offset("x = __ldg(p.k + at + 4 * i);", "k"));
}

TEST_CASE("what is given more than a name is computed") {
  CHECK(computes("const int end = min(n, begin + 4);", "end"));
  CHECK(computes("const int begin = 4 * i, end = n;", "begin"));
  CHECK_FALSE(computes("const int begin = 4 * i, end = n;", "end"));
  CHECK(computes("q += head;", "q"));
  CHECK(computes("x = -1;", "x"));
  CHECK_FALSE(computes("int lane = threadIdx.x, warp = 0;", "lane"));
  CHECK_FALSE(computes("int lane = threadIdx.x, warp = 0;", "warp"));
  CHECK_FALSE(computes("if (x == y + 1) return;", "x"));
  CHECK_FALSE(computes("f(const float* q, int n)", "q"));
}

TEST_CASE("an argument that only adds names") {
  CHECK(is_plain_argument("x[i] = in ? load(from + at.lane) : 0;", "from"));
  CHECK(is_plain_argument("f(a, b)", "b"));
  CHECK_FALSE(is_plain_argument("load(from + row * stride)", "from"));
  CHECK_FALSE(is_plain_argument("load(k + (base + r / 2) * n)", "base"));
  CHECK_FALSE(is_plain_argument("x = from + at;", "from"));
}

TEST_CASE("names of a row within a subscript, and extents") {
  CHECK(row_names("x += v[(bh * n + j0 + t) * kDim + i * 32 + lane];", "v") ==
        std::vector<std::string>{"bh", "n", "j0", "t"});
  CHECK(row_names("x += v[t * kDim + (i + 1)];", "v").empty());
  CHECK(row_names("x += k[(t) * n] * v[t];", "v").empty());
  CHECK(extents_of("__shared__ half a[4][n + 8], b[2];", "a") == "[4][n+8]");
  CHECK(extents_of("__shared__ half a[4][n + 8], b;", "b").empty());
}

TEST_CASE("what a line stores to, what a variable is made of, and what is handed to a call") {
  using Names = std::vector<std::string>;
  CHECK(stored_arrays("a[i] = b[j] + c[k];") == Names{"a"});
  CHECK(stored_arrays("*reinterpret_cast<float4*>(&tile[i][0]) = from[i];") == Names{"tile"});
  CHECK(stored_arrays("x = y[i] == z[i];").empty());
  bool moves = false;
  CHECK(made_of("float4* tile = reinterpret_cast<float4*>(smem);", "tile", moves) ==
        Names{"float4", "smem"});
  CHECK_FALSE(moves);
  CHECK(made_of("float* v = k + rows * d;", "v", moves) == Names{"k", "rows", "d"});
  CHECK(moves);
  const auto arguments =
      arguments_of("wmma::load_matrix_sync(a[i], s.P + f(k, 2), n);", "load_matrix_sync");
  REQUIRE(arguments.size() == 3);
  CHECK(arguments[0] == Names{"a", "i"});
  CHECK(arguments[2] == Names{"n"});
  CHECK(arguments_of("f(x);", "load_matrix_sync").empty());
}

}  // namespace attn_diag::lines

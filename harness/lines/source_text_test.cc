#include "harness/lines/source_text.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "harness/testing/temporary_directory.h"

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
  CHECK(subscript_names("s += a[i];", "b").empty());
  CHECK(subscript_names("(&a[0][0])[i] = b[j];", "a") == Names{"i"});
  CHECK(is_plain_subscript("(&a[0][0])[i] = x;", "a"));
  CHECK_FALSE(is_plain_subscript("(&a[0][0])[i + n] = x;", "a"));
  CHECK(is_loop("for (int j = 0; j < n; ++j) s += x[j];"));
  CHECK(is_loop("for j in range(0, n):"));
  CHECK_FALSE(is_loop("while (j < n)"));
}

TEST_CASE("under which conditions a variable becomes minus infinity") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "k.cu";
  std::ofstream(path)
      << "void f(float* s) {\n  if (j >= n) s[j] = -INFINITY;\n  if (i < n)\n  {\n"
         "    for (;;) x = -1e9f;\n  }\n  if (b) x = NEG_INF;\n  if (c) x = -1.5f;\n"
         "  x = -FLT_MAX;\n}\nvoid g() {\n  if (d) x = -INFINITY;\n}\n";
  SourceText text;
  CHECK(text.masks_of(path, 4, "s") == std::vector<int>{2});
  CHECK(text.masks_of(path, 4, "x") == std::vector<int>{3, 7});
  CHECK(text.masks_of(path, 4, "y").empty());
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

TEST_CASE("where a variable is declared") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "k.cu";
  std::ofstream(path)
      << "float sum[4], l;\nint n = 0;\nfor (;;) {\n  float l = 0;\n  sum[n] += l;\n}\nn = 1;\n";
  SourceText text;
  CHECK(text.declared_above(path, 5, "sum") == 1);
  CHECK(text.declared_above(path, 5, "l") == 4);
  CHECK(text.declared_above(path, 3, "l") == 1);
  CHECK(text.declared_above(path, 7, "n") == 2);
  CHECK(text.declared_above(path, 7, "m") == 0);
  CHECK(text.is_integer(path, 7, "n"));
  CHECK_FALSE(text.is_integer(path, 7, "l"));
}

TEST_CASE("where a fragment is declared that is loaded") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "k.cu";
  std::ofstream(path) << "fragment<matrix_a, 16, 16, 16, half, row_major> a;\n"
                         "for (;;) {\n  wmma::fragment<matrix_b, 16, 16, 16, half,\n"
                         "    col_major> b[2], c;\n  load_matrix_sync(b[0], p, 16);\n}\n"
                         "fragment<matrix_a, 16, 16, 16, half, row_major> a;\n";
  SourceText text;
  CHECK(text.declares_fragment_above(path, 5, "a") == 1);
  CHECK(text.declares_fragment_above(path, 5, "b") == 3);
  CHECK(text.declares_fragment_above(path, 8, "a") == 7);
  CHECK(text.declares_fragment_above(path, 5, "p") == 0);
}

TEST_CASE("where a file stores to an array, and which are shared") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "k.cu";
  std::ofstream(path)
      << "__shared__ float tile[kRows],\n  other[4];\n__device__ float local;\n"
         "tile[i] = x;\nx = tile[i] + other[0];\ncopy(&tile[i], from, 16);\n"
         "a.tile[i][j] += y;\nif (tile[i] == 3) f(x & tile[1]);\nother[1] = tile[\n  2];\n";
  SourceText text;
  CHECK(text.lines_that_store(path, "tile") == std::vector{4, 6, 7});
  CHECK(text.lines_that_store(path, "other") == std::vector{9});
  CHECK(text.lines_that_store(path, "a") == std::vector{7});
  CHECK(text.is_shared(path, "tile"));
  CHECK(text.is_shared(path, "other"));
  CHECK_FALSE(text.is_shared(path, "local"));
  CHECK_FALSE(text.is_shared(path, "kRows"));
  CHECK_FALSE(text.is_shared(folder / "none.cu", "tile"));
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
  for (const char* line :
       {"if (key <= keys) {", "if (row > rows) return;", "} else if (a <= b) x = 1;"})
    CHECK(lets_the_end_through(line));
  for (const char* line :
       {"if (key < keys) {", "if (row >= rows) return;", "if (row <= rows) return;",
        "if (row > rows) {", "while (a <= b)", "if (a < b) x = c <= d;"})
    CHECK_FALSE(lets_the_end_through(line));
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

TEST_CASE("what a function of the file has, and what it ignores") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "a.cu";
  std::ofstream(path)
      << "float of_all(float x) {\n  x = max(x, y);\n  return x;\n}\n"
         "__global__ void begin(float* m, float* l, int n) {\n  l[n] = of_all(0);\n}\n"
         "__global__ void end(float* m) {\n  m[0] += 1;\n}\n";
  SourceText text;
  CHECK(text.lines_of_function(path, "of_all") == std::vector{2, 3});
  CHECK(text.lines_of_function(path, "max").empty());
  CHECK(text.ends_of_functions_that_ignore(path, "m") == std::vector{7});
  CHECK(text.ends_of_functions_that_ignore(path, "l").empty());
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

TEST_CASE("lines of files, and none of what is not there") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_source_text_test.cu";
  std::ofstream(path) << "one\ntwo\n";
  SourceText text;
  CHECK(text.line(path.string(), 2) == "two");
  CHECK(text.line(path.string(), 0).empty());
  CHECK(text.line(path.string(), 3).empty());
  CHECK(text.line(path.string() + ".not", 1).empty());
  std::filesystem::remove(path);
}

TEST_CASE("where a statement ends, and where threads wait") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_statements_test.cu";
  std::ofstream(path) << "__global__ void f(float* x) {\n"       // 1
                         "  for (int i = 0; i < 4; ++i)\n"       // 2
                         "    for (int j = 0; j < 4; ++j) {\n"   // 3
                         "      x[i] = g([&] { return 1; });\n"  // 4
                         "    }\n"                               // 5
                         "  __syncthreads();\n"                  // 6
                         "  int n = 0; if (n) {\n"               // 7
                         "    __shfl_xor_sync(~0u, n, 1);\n"     // 8
                         "  } else\n"                            // 9
                         "    wmma::load_matrix_sync(n,\n"       // 10
                         "                           n);\n"      // 11
                         "  asm volatile(\"bar.sync 0;\");\n"    // 12
                         "  // __syncthreads();\n"               // 13
                         "  do n = 0; while (n);\n"              // 14
                         "}\n";
  SourceText text;
  const std::string file = path.string();
  const std::map<int, int> ends = {{2, 5},   {3, 5},   {4, 4},   {6, 6},  {7, 11},
                                   {10, 11}, {13, 13}, {14, 14}, {99, 99}};
  for (const auto& [begin, end] : ends) CHECK(text.end_of_statement(file, begin) == end);
  CHECK(text.has_barrier(file, 5, 7));
  CHECK_FALSE(text.has_barrier(file, 6, 12));
  CHECK(text.has_barrier(file, 6, 13));
  CHECK_FALSE(text.has_barrier(file, 12, 99));
  CHECK_FALSE(text.has_barrier(file + ".not", 0, 99));
  std::filesystem::remove(path);
}

TEST_CASE("the statements around a line, and which barriers are passed on the way") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_around_test.cu";
  std::ofstream(path) << "__global__ void f(float* x) {\n"         // 1
                         "  fetch(0);\n"                           // 2
                         "  for (int i = 0; i < 4; ++i) {\n"       // 3
                         "    if (i < 3) {\n"                      // 4
                         "      fetch(i + 1);\n"                   // 5
                         "      __pipeline_wait_prior(1);\n"       // 6
                         "    } else {\n"                          // 7
                         "      __pipeline_wait_prior(0);\n"       // 8
                         "      __syncthreads();\n"                // 9
                         "    }\n"                                 // 10
                         "    x[i] += x[0];\n"                     // 11
                         "    asm(\"cp.async.wait_group 1;\");\n"  // 12
                         "    __syncthreads();\n"                  // 13
                         "    x[i] = 0;\n"                         // 14
                         "  }\n"                                   // 15
                         "}\n";
  SourceText text;
  const std::string file = path.string();
  std::vector<std::pair<int, int>> around;
  for (const Statement& one : text.statements_around(file, 9))
    around.emplace_back(one.begin, one.end);
  CHECK(around == std::vector<std::pair<int, int>>{{3, 15}, {4, 10}});
  CHECK(text.statements_around(file, 2).empty());
  CHECK(text.passes_barrier(file, 2, 14));
  CHECK_FALSE(text.passes_barrier(file, 2, 11));  // 9 is not always passed
  CHECK(text.has_barrier(file, 2, 11));
  CHECK(text.waits_for_copies(file, 11) == std::vector{6, 12});
  CHECK(text.assigned_above(file, 15, "i") == 3);
  CHECK(text.assigned_above(file, 15, "x") == 0);
  std::filesystem::remove(path);
}

TEST_CASE("an argument that only adds names") {
  CHECK(is_plain_argument("x[i] = in ? load(from + at.lane) : 0;", "from"));
  CHECK(is_plain_argument("f(a, b)", "b"));
  CHECK_FALSE(is_plain_argument("load(from + row * stride)", "from"));
  CHECK_FALSE(is_plain_argument("load(k + (base + r / 2) * n)", "base"));
  CHECK_FALSE(is_plain_argument("x = from + at;", "from"));
}

TEST_CASE("comments and what strings hold are no code") {
  const attn_diag::testing::TemporaryDirectory folder;
  const std::string file = (folder.path() / "k.cu").string();
  std::ofstream(file) << R"source(__global__ void f(float* x) {
  /* Wait until only the newest group may remain: wait_group(1).
     wait_prior(1); __syncthreads();
   */
  x[0] = 1; // wait_prior(1);
  /* why */ x[1] = 2;
  log("wait_prior(1); cp.async.wait_group 1; bar.sync 0; min(a, b)");
  x[2] = x[0];
}
)source";
  SourceText text;
  CHECK(text.waits_for_copies(file, 8).empty());
  CHECK_FALSE(text.has_barrier(file, 1, 8));
  CHECK(text.line(file, 3).find_first_not_of(' ') == std::string::npos);
  CHECK(text.is_comment(file, 2));
  CHECK(text.is_comment(file, 4));
  CHECK_FALSE(text.is_comment(file, 6));
  CHECK_FALSE(text.is_comment(file, 10));
  CHECK(text.line(file, 7).find("min(") == std::string::npos);
  CHECK(text.written(file, 5) == "  x[0] = 1; // wait_prior(1);");
  const std::string script = (folder.path() / "k.py").string();
  std::ofstream(script) << "def f(x):\n  \"\"\"for i in\n  range(1, 4)\"\"\"\n"
                           "  # y = x\n  y = x // 2  # min(x, 2)\n";
  CHECK(text.line(script, 3).find("range") == std::string::npos);
  CHECK(text.is_comment(script, 4));
  CHECK(text.line(script, 5).find("y = x // 2") == 2);
  CHECK(text.line(script, 5).find("min(") == std::string::npos);
}

TEST_CASE("a statement of several lines is read as one") {
  const attn_diag::testing::TemporaryDirectory folder;
  const std::string file = (folder.path() / "k.cu").string();
  std::ofstream(file) << R"source(__global__ void f(float* x) {
  for (
      int at = 0;  // from 0
      at < n;
      at += kStep
  ) {
    x[at] = min(
        at, 4);
    if (at > 2) x[at] = f("a;b",
        [&](int i) {
          return x[i];
        });
  }
}
)source";
  SourceText text;
  for (const int line : {2, 3, 4, 5})
    CHECK(text.statement(file, line) == "for ( int at = 0; at < n; at += kStep )");
  CHECK(is_plain_loop(text.statement(file, 3), true));
  CHECK(text.statement(file, 8) == "x[at] = min( at, 4);");
  CHECK(text.statement(file, 9) == "if (at > 2) x[at] = f(\"\", [&](int i)");
  CHECK(text.statement(file, 11) == "          return x[i];");
  CHECK(text.statement(file, 13) == "  }");
}

TEST_CASE("a helper that waits for all copies leaves none in flight") {
  const attn_diag::testing::TemporaryDirectory folder;
  std::ofstream(folder.path() / "copies.cuh") << R"source(
#define WAIT_ALL() asm volatile("cp.async.wait_all;\n")
#define WAIT(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))
__device__ void copies_done() { asm volatile("cp.async.wait_group 0;\n"); }
__device__ void async_wait() { copies_done(); }
__device__ void async_wait_1() { asm volatile("cp.async.wait_group 1;\n" ::: "memory"); }
template <int N> __device__ void wait_async() { WAIT(N); }
__device__ void wait_for_async_flag(int* flag) { while (*flag == 0) {} }
__device__ void meet() { asm volatile("bar.sync 0;"); }
)source";
  const std::string file = (folder.path() / "k.cu").string();
  std::ofstream(file) << R"source(#include "copies.cuh"
namespace a {
__device__ void other() { wait_async<1>(); }
__global__ void f(float* x) {
  async_wait();
  async_wait_1();
  wait_async<0>();
  wait_async<1>();
  WAIT_ALL();
  WAIT(0);
  WAIT(2);
  wait_for_async_flag(x);
  const auto wait_copies = [&] { copies_done(); };
  wait_copies();
  pipe.consumer_wait();
  cg::wait(block);
  unknown_async_wait();
  unknown_async_wait<kStages - 2>();
  x[0] = x[1];
  meet();
  x[1] = 0;
}
})source";
  SourceText text;
  CHECK(text.waits_for_copies(file, 19) == std::vector{18, 15, 11, 8, 6});
  CHECK(text.has_barrier(file, 19, 21));
  CHECK_FALSE(text.has_barrier(file, 16, 20));
}

TEST_CASE("calls of one group of copies stand beside each other") {
  const attn_diag::testing::TemporaryDirectory folder;
  const std::string file = (folder.path() / "k.cu").string();
  std::ofstream(file) << R"source(__global__ void f(float* x) {
  copy(sq, q);
  __pipeline_commit();
  copy(sk, k, 2);
  move(sk, k);
  copy(sv, v);
  __syncthreads();
  copy(sk, k);
  CP_ASYNC_COMMIT();
  copy(sv, v);
  __pipeline_wait_prior(1);
  copy(sk, k);
})source";
  SourceText text;
  CHECK(text.same_call_beside(file, 4) == std::vector{6});
  CHECK(text.same_call_beside(file, 6) == std::vector{4});
  for (const int line : {2, 3, 5, 8, 10, 12}) {
    INFO(line);
    CHECK(text.same_call_beside(file, line).empty());
  }
}

TEST_CASE("where threads may return above a line of a kernel") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_returns_test.cu";
  std::ofstream(path) << R"(namespace a {
__device__ void other(int n) { if (n) return; }
__global__ void __launch_bounds__(32) kernel(int n) {
  if (threadIdx.x >= n) {
    return;
  }
  const auto act = [&](int i) { if (i > n) return; };
  for (int i = 0; i < n; ++i) {
    if (i == 7) return;
    __syncthreads();
  }
  return;
}
__global__ void last() {
  __syncthreads();
}
})";
  SourceText text;
  CHECK(text.returns_above(path.string(), 10) == std::vector{9, 5});
  CHECK(text.returns_above(path.string(), 15).empty());
  std::filesystem::remove(path);
}

TEST_CASE("where pointers are moved by the block, unless the one asked for is") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_moves_test.cu";
  std::ofstream(path) << R"(__global__ void f(const float* q, float* o, float* lse, int n) {
  const int bh = fast(blockIdx.y, 2), row = blockIdx.x;
  q += (size_t)bh * n; o += blockIdx.y * n;
  float* const mine = o + row;
  const float* __restrict__ k = q + bh;
  int sum = n;
  sum += 4;
  for (int x = 0; x < n; x += blockDim.y) o[row + bh] = 1;
  lse[row] = 0;
})";
  SourceText text;
  CHECK(text.moves_others_by_block(path.string(), 9, "lse") == 5);
  CHECK(text.moves_others_by_block(path.string(), 4, "lse") == 3);
  CHECK(text.moves_others_by_block(path.string(), 9, "o") == 0);
  CHECK(text.moves_others_by_block(path.string(), 2, "lse") == 0);
  std::filesystem::remove(path);
}

TEST_CASE("helpers that do nothing with what they are given") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_helpers_test.cu";
  std::ofstream(path) << R"(__device__ void copy(int* to, const int* from) {
  ;
}
template <int N> __device__ void fill(int* to) {}
__device__ void wait() {}
__device__ int none(int) { return 0; }
__device__ void other(int n) {}
__global__ void f(int* a, const int* b) {
  copy(a, b);
  fill<4>(a);
  wait();
  none(1);
})";
  SourceText text;
  CHECK(text.calls_without_effect(path.string(), 9) == std::vector{2, 4});
  CHECK(text.calls_without_effect(path.string(), 2).empty());
  std::filesystem::remove(path);
}

TEST_CASE("what a function computes and does nothing with") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_unused_test.cu";
  std::ofstream(path) << R"(__global__ void f(const float* q, float* o, int n, float scale) {
  float m = -INFINITY, l = 0.f, acc[4] = {};
  __shared__ float part[32];
  const int lane = threadIdx.x;
  int count = 0;
  for (int j = 0; j < n; ++j) {
    const float s = q[j] * scale, m_new = fmaxf(m, s), alpha = __expf(m - m_new);
    l = l * alpha
        + s;
    const float p = __expf(s - m_new), weight = __expf(s);
    for (int i = 0; i < 4; ++i) acc[i] = acc[i] * alpha + p;
    m = m_new;
    part[lane] = s;
  }
  float& other = o[1];
  other = m;
  count = count + 1;
  o[0] = m;
  store(&count);
  auto to = o + n * lane;
  to[lane] = m;
})";
  SourceText text;
  std::vector<std::pair<std::string, int>> found;
  for (const UnusedName& one : text.computed_for_nothing(path.string(), 6))
    found.emplace_back(one.name, one.line);
  CHECK(found == std::vector<std::pair<std::string, int>>{
                     {"l", 8}, {"weight", 10}, {"acc", 11}, {"part", 13}});
  std::filesystem::remove(path);
}

TEST_CASE("what a function uses and never computes, beside what it does") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_unchanged_test.cu";
  std::ofstream(path) << R"(__global__ void f(const float* s, float* o, int n) {
  float m = -INFINITY, l = 0.0f, acc = 0.f, zero = 0.f;
  float low = -1e30f, high[2] = {0.f, 0.f}, given = 0.f;
  float none = 0.f;
  int count = 0, other = 0;
  fill(given);
  for (int i = 0; i < n; ++i) {
    acc = acc * s[i] + zero;
    low = fmaxf(low, s[i]);
    m = -INFINITY;
  }
  o[0] = acc / l + m + low * high[1] + given + none + count;
  other = n;
}
__global__ void g(const float* s, float* o) {
  const float none = 0.f, one = s[0];
  float m[2] = {-FLT_MAX, -FLT_MAX}, l[2];
  for (int i = 0; i < 2; ++i) l[i] = 0.f;
  for (int i = 0; i < 2; ++i) m[i] = fmaxf(m[i], s[i]), l[i] += one;
  o[0] = m[0] + l[1] + none;
})";
  SourceText text;
  std::vector<std::tuple<std::string, std::string, int>> found;
  for (const UnchangedName& one : text.never_computed(path.string(), 9))
    found.emplace_back(one.name, one.beside, one.line);
  CHECK(found == std::vector<std::tuple<std::string, std::string, int>>{
                     {"l", "acc", 8}, {"m", "acc", 8}, {"zero", "acc", 8}, {"high", "low", 9}});
  CHECK(text.never_computed(path.string(), 18).empty());
  std::filesystem::remove(path);
}

TEST_CASE("lambdas around a line, and who names them") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_lambdas_test.cu";
  std::ofstream(path) << R"(__global__ void f(float* to, int n) {
  auto fetch = [&](int tile, const int stage) {
    auto inner = [=] { to[stage] = tile; };
    inner();
  };
  fetch(0, 0);
  if (n) fetch(n, 1);
  p.fetch(n);
}
__global__ void g(int fetch) { fetch = 4; })";
  SourceText text;
  const auto around = text.lambdas_around(path.string(), 3);
  REQUIRE(around.size() == 2);
  CHECK(around[0].name == "fetch");
  CHECK(around[0].parameters == std::vector<std::string>{"tile", "stage"});
  CHECK(around[0].calls == std::vector{6, 7});
  CHECK(around[1].calls == std::vector{4});
  CHECK(around[1].name == "inner");
  CHECK(around[1].parameters.empty());
  CHECK(text.lambdas_around(path.string(), 6).empty());
  CHECK(text.lines_that_name(path.string(), 3, "fetch") == std::vector{2, 6, 7});
  CHECK(text.lines_that_name(path.string(), 30, "fetch").empty());
  std::filesystem::remove(path);
}

TEST_CASE("a helper that lets other blocks go on") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_release_test.cu";
  std::ofstream(path) << R"(__device__ void release(int* lock) { atomicExch(lock, 0); }
__device__ void nothing(int* lock) { lock[0] = 0; }
__global__ void f(float* sum, int* lock) {
  sum[0] = 1;
  nothing(lock);
  release(lock);
})";
  SourceText text;
  CHECK(text.tells_other_blocks(path.string(), 4) == 6);
  CHECK(text.tells_other_blocks(path.string(), 6) == 0);
  std::filesystem::remove(path);
}

TEST_CASE("names of a row within a subscript, and extents") {
  CHECK(row_names("x += v[(bh * n + j0 + t) * kDim + i * 32 + lane];", "v") ==
        std::vector<std::string>{"bh", "n", "j0", "t"});
  CHECK(row_names("x += v[t * kDim + (i + 1)];", "v").empty());
  CHECK(row_names("x += k[(t) * n] * v[t];", "v").empty());
  CHECK(extents_of("__shared__ half a[4][n + 8], b[2];", "a") == "[4][n+8]");
  CHECK(extents_of("__shared__ half a[4][n + 8], b;", "b").empty());
}

TEST_CASE("what does nothing, and is no loop that waits") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_nothing_test.cu";
  std::ofstream(path) << R"(__global__ void f(volatile int* flag, int n) {
  for (int x = threadIdx.x; x < n; x += blockDim.x) ;
  for (int x = 0; flag[x] == 0; ++x) ;
  for (int x = 0; x < n && load(flag) == 0; ++x) ;
  for (; n < 4; ++n) ;
  for (int x = 0; x < n; ++x) g(x);
  while (*flag == 0) ;
  if (threadIdx.x == 0) ;
  if (n) ; else g(n);
  if constexpr (kFull) ;
}
__global__ void other(int n) { for (int x = 0; x < n; ++x); })";
  SourceText text;
  CHECK(text.without_effect(path.string(), 6) == std::vector{2, 8, 10});
  CHECK(text.without_effect(path.string(), 12) == std::vector{12});
  CHECK(text.without_effect(path.string() + ".not", 1).empty());
  std::filesystem::remove(path);
}

TEST_CASE("which call of a pipeline is missing, and where") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_unpaired_test.cu";
  std::ofstream(path) << R"(__global__ void f(int n) {
  for (int i = 0; i < n; ++i) {
    pipe.producer_acquire();
    copy(i, pipe);
    fetch(i);
  }
  for (int i = 0; i < n; ++i) {
    use(i);
    pipe.consumer_release();
  }
  other->consumer_wait();
}
__device__ void g() { other->consumer_release(); mine.consumer_wait(); }
)";
  SourceText text;
  const auto found = text.unpaired_calls(path.string(), 4);
  REQUIRE(found.size() == 2);
  CHECK(found[0].line == 5);
  CHECK(found[0].missing == "pipe.producer_commit()");
  CHECK(found[1].line == 8);
  CHECK(found[1].missing == "pipe.consumer_wait()");
  CHECK(found[1].present == "pipe.consumer_release()");
  CHECK(text.unpaired_calls(path.string(), 13).size() == 1);
  std::filesystem::remove(path);
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

TEST_CASE("where a block of Python ends") {
  const auto path = std::filesystem::temp_directory_path() / "attn_diag_blocks_test.py";
  std::ofstream(path) << "def f(n):\n"               // 1
                         "    for i in range(n):\n"  // 2
                         "        a = i\n"           // 3
                         "        if a:\n"           // 4
                         "            a = 2\n"       // 5
                         "\n"                        // 6
                         "        # a remark\n"      // 7
                         "        pass\n"            // 8
                         "    return a\n";           // 9
  SourceText text;
  const std::string file = path.string();
  CHECK(text.end_of_block(file, 2) == 5);
  CHECK(text.end_of_block(file, 3) == 0);
  CHECK(text.behind_block(file, 2) == 9);
  CHECK(text.behind_block(file, 3) == 4);
  CHECK(text.behind_block(file, 4) == 9);
  CHECK(text.behind_block(file, 9) == 0);
  CHECK(text.behind_block(file + ".not", 1) == 0);
  std::filesystem::remove(path);
}

}  // namespace attn_diag::lines

// What edits are proposed, what they look like, and that many of them are one text.
#include "harness/repair/edit.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "harness/repair/schema.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::repair {
namespace {

Program program_of(const std::string& text) { return take_apart({{"/x/k.cu", "k.cu", text}}); }

// A kernel with this body, on line 2.
std::string kernel_of(const std::string& body) {
  return "__global__ void k(float* o, const float* q, int n, int m, float alpha) {\n" + body +
         "\n}\n";
}

// Whether some edit makes the second of the first.
const Edit* edit_to(const Program& p, const std::vector<Edit>& edits, const std::string& wanted) {
  for (const Edit& e : edits)
    if (edited(*p.files[0], e) == wanted) return &e;
  return nullptr;
}

struct Wanted {
  const char* wrong;
  const char* right;
  const char* operation;
};

TEST_CASE("a function without a name among the file's constants has its edits") {
  const std::string before = "constexpr auto kLarger = [](float a, float b) { ";
  const std::string behind =
      " return b; };\nconstexpr int kTile = 32;\n" + kernel_of("o[n] = kLarger(q[n], alpha);");
  const Program p = program_of(before + "if (a > b) return a;" + behind);
  const std::vector<Edit> edits = propose_edits(p);
  CHECK(edit_to(p, edits, before + "if (a >= b) return a;" + behind) != nullptr);
}

TEST_CASE("each way of being wrong by little has its edit") {
  const Wanted rows[] = {
      {"if (n < m) o[n] = 1;", "if (n <= m) o[n] = 1;", "relational operator"},
      {"o[n] = q[n] + alpha;", "o[n] = q[n] * alpha;", "arithmetic operator"},
      {"if (n > 0 || m > 0) o[n] = 1;", "if (n > 0 && m > 0) o[n] = 1;", "logical operator"},
      {"o[n] = q[n] * alpha;", "o[n] = q[n];", "operand dropped"},
      {"if (n < 4 && m < 4) o[n] = 1;", "if (m < 4) o[n] = 1;", "operand dropped"},
      {"o[n] = alpha - q[n];", "o[n] = q[n] - alpha;", "operands swapped"},
      {"o[n * 8 + m] = 1;", "o[m * 8 + n] = 1;", "terms swapped"},
      {"o[(n + m) * 8] = 1;", "o[n + m * 8] = 1;", "grouping"},
      {"o[n] += q[n];", "o[n] = q[n];", "assignment operator"},
      {"o[n] = n < m ? q[n] : 0.f;", "o[n] = q[n];", "choice"},
      {"o[n] = -q[n];", "o[n] = q[n];", "sign"},
      {"o[n] += q[n];", "o[n] = o[n] * alpha + q[n];", "sum rescaled"},
      {"o[n] = 3;", "o[n] = 4;", "integer"},
      {"o[n + 16] = 1;", "o[n + 32] = 1;", "integer"},
      {"o[n] = 0.5f;", "o[n] = -0.5f;", "real number"},
      {"float x = 0.f; o[n] = x;", "float x = -INFINITY; o[n] = x;", "real number"},
      {"o[n] = q[n];", "o[n] = q[m];", "name"},
      {"o[n] = q[n];", "o[n] = q[n - 1];", "off by one"},
      {"o[n] = q[n / m];", "o[n] = q[n / m + 1];", "off by one"},
      {"o[n] = f(n * m);", "o[n] = f(n * m - 1);", "off by one"},
      {"o[n] = q[n];", "o[n] = q[n] * alpha;", "missing factor"},
      {"o[n] = q[n];", "o[n] = q[n * m];", "missing term"},
      {"o[threadIdx.x] = 1;", "o[threadIdx.y] = 1;", "member"},
      {"o[n] = fmaxf(q[n], alpha);", "o[n] = fminf(q[n], alpha);", "function"},
      {"o[n] = f(n, m);", "o[n] = f(m, n);", "arguments swapped"},
      {"o[n] = f(q[n]);", "o[n] = q[n];", "call dropped"},
      {"if (n < m) o[n] = 1;", "if (!(n < m)) o[n] = 1;", "condition"},
      {"if (n < m) o[n] = 1; o[m] = 2;", "if (n < m) o[n] = 1; if (n < m) o[m] = 2;", "guard"},
      {"float s; o[n] = s;", "float s = 0.f; o[n] = s;", "initialiser"},
      {"float s[4]; o[n] = s[0];", "float s[4] = {}; o[n] = s[0];", "initialiser"},
      {"for (;;) { if (n < m) break; }", "for (;;) { if (n < m) continue; }", "jump"},
      {"int t[2][2]; o[t[n][m]] = 1;", "int t[2][2]; o[t[m][n]] = 1;", "indices swapped"},
      {"auto a = q[n], b = q[m]; o[n] = a; o[m] = b;",
       "auto a = q[n], b = q[m]; o[n] = b; o[m] = b;", "name"},
      {"o[n * m + 7] = q[n + 7];", "o[n * m + 7] = q[n * m + 7];", "as elsewhere"},
      {"o[n] = q[n % 4];", "o[n % 4] = q[n % 4];", "as elsewhere"},
      {"o[m] = q[m / 4] + q[n / 4];", "o[m / 4] = q[m / 4] + q[n / 4];", "as elsewhere"},
      {"const int base = n * 8; o[m + n * 4] = q[base];",
       "const int base = n * 8; o[m + base] = q[base];", "variable for expression"},
      {"const int next = n; o[next] = 1;", "const int next = n ^ 1; o[next] = 1;", "other buffer"},
      {"o[n * 8 + m * 4] = 1;", "o[m * 8 + n * 4] = 1;", "renamed throughout"},
      {"int e = 5; o[n < m ? n : m] = e;", "int e = 5; o[e < m ? e : m] = e;",
       "renamed throughout"},
      {"o[n] = f<A>(m); o[m] = f<B>(m);", "o[n] = f<B>(m); o[m] = f<B>(m);", "template arguments"},
      {"o[(n + m) / 4 + 8] = 1;", "o[(n + m + 8) / 4] = 1;", "term moved"},
      {"float a = 1, b = 2; a = f(a); o[n] = a + b;",
       "float a = 1, b = 2; a = f(a); b = f(b); o[n] = a + b;", "as for another"},
      {"float l = 0; for (;;) { for (;;) { l += 1; } o[n] = l; }",
       "float l = 0; for (;;) { l = 0; for (;;) { l += 1; } o[n] = l; }", "missing reset"},
      {"o[8 + threadIdx.x * m + n] = q[m * 16];", "o[8 + n * 16 + threadIdx.x] = q[m * 16];",
       "transposed"},
      {"o[n % (m / 4)] = 1;", "o[n / 4] = 1;", "other grouping"},
      {"o[m / (n / 4)] = 1;", "o[m % 4] = 1;", "other grouping"},
      {"o[n % 4] = 1;", "o[n / (m / 4)] = 1;", "other grouping"},
      {"float l = 0; l += __shfl_xor_sync(~0u, l, 1); o[n] = l;",
       "float l = 0; l += __shfl_xor_sync(~0u, l, 1); l += __shfl_xor_sync(~0u, l, 2); o[n] = l;",
       "missing distance"},
      {"float a = q[n]; a = fmaxf(a, __shfl_xor_sync(~0u, a, 2)); float l = 0; for (;;) l += 1; "
       "o[n] = l + a;",
       "float a = q[n]; a = fmaxf(a, __shfl_xor_sync(~0u, a, 2)); float l = 0; for (;;) l += 1; "
       "l += __shfl_xor_sync(~0u, l, 4); o[n] = l + a;",
       "missing shuffle"},
      {"float m[2], l[2]; m[n] = alpha; o[n] = l[n] / m[n];",
       "float m[2], l[2]; m[n] = alpha; l[n] *= alpha; o[n] = l[n] / m[n];", "missing assignment"},
      {"float l = 0; for (;;) { const float b = q[n], p = q[m]; o[n] = b + p; } o[m] = l;",
       "float l = 0; for (;;) { const float b = q[n], p = q[m]; l = l * b + p; o[n] = b + p; } "
       "o[m] = l;",
       "missing update"},
  };
  for (const Wanted& row : rows) {
    INFO(row.wrong << " -> " << row.right);
    const Program p = program_of(kernel_of(row.wrong));
    const std::vector<Edit> edits = propose_edits(p);
    const Edit* edit = edit_to(p, edits, kernel_of(row.right));
    REQUIRE(edit != nullptr);
    CHECK(edit->operation == std::string(row.operation));
    CHECK(edit->line == 2);
  }
}

TEST_CASE("barriers are put between statements, moved, and left out with their line") {
  const std::string text =
      "__global__ void k(float* o) {\n  o[0] = 1;\n  __syncthreads();\n  o[1] = 2;\n}\n";
  const Program p = program_of(text);
  const std::vector<Edit> edits = propose_edits(p);
  CHECK(edit_to(p, edits, "__global__ void k(float* o) {\n  o[0] = 1;\n  o[1] = 2;\n}\n"));
  CHECK(
      edit_to(p, edits,
              "__global__ void k(float* o) {\n  __syncthreads();\n  o[0] = 1;\n  o[1] = 2;\n}\n"));
  CHECK(edit_to(p, edits,
                "__global__ void k(float* o) {\n  o[0] = 1;\n  __syncthreads();\n  o[1] = 2;\n  "
                "__syncthreads();\n}\n"));
}

TEST_CASE("what the compiler must know is edited by itself") {
  const Program p = program_of(
      "constexpr int kTile = 32;\n"
      "template <int N> __device__ int f(int n) { __shared__ float s[N + 1]; return g<2>(n); }\n"
      "__device__ int h(int n) { const int half = 16, all = half * 2, more = 64; return g<all>(n) "
      "+ more; }\n");
  std::set<std::string> alone;
  for (const Edit& e : propose_edits(p))
    if (e.way == Way::kAlone)
      alone.insert(p.files[0]->text.substr(e.begin, e.end - e.begin) + ">" + e.text);
  CHECK(alone.contains("32>33"));
  CHECK(alone.contains("2>3"));
  CHECK(alone.contains("+>-"));
  CHECK(alone.contains("16>17"));
  CHECK(alone.contains("*>+"));
  CHECK_FALSE(alone.contains("64>65"));
}

TEST_CASE("a template's argument is chosen with its call") {
  const Program p = program_of(
      "template <int N> __device__ int g(int n);\n"
      "__device__ int f(int n) { return g<8>(n) + n; }\n");
  const std::vector<Edit> edits = propose_edits(p);
  const auto found =
      std::find_if(edits.begin(), edits.end(), [](const Edit& e) { return e.text == "9"; });
  REQUIRE(found != edits.end());
  CHECK(found->way == Way::kExpression);
  CHECK_THAT(found->alternative, contains("g"));
  CHECK_THAT(make_schema(p, edits, {static_cast<int>(found - edits.begin())}).texts[0],
             contains("g<8>(n)"));
}

TEST_CASE("to store to another variable is more than not to store") {
  const Program p = program_of(kernel_of("n += m; o[0] = n;"));
  const std::vector<Edit> edits = propose_edits(p);
  const auto size = [&](const std::string& body) {
    const Edit* const found = edit_to(p, edits, kernel_of(body));
    REQUIRE(found != nullptr);
    return found->size;
  };
  const int dropped = size(" o[0] = n;");
  CHECK(size("m += m; o[0] = n;") > dropped);
  // What is read instead is a smaller change.
  CHECK(size("n += n; o[0] = n;") < dropped);
}

TEST_CASE("two statements in a row may have each other's place or value") {
  const std::string text = kernel_of("o[2] = q[3]; o[3] = q[2]; alpha = q[0]; o[0] = alpha;");
  const Program p = program_of(text);
  const std::vector<Edit> edits = propose_edits(p);
  const Edit* const values =
      edit_to(p, edits, kernel_of("o[2] = q[2]; o[3] = q[3]; alpha = q[0]; o[0] = alpha;"));
  REQUIRE(values != nullptr);
  CHECK(values->operation == "values swapped");
  CHECK(values->tier == 0);
  const auto order = [&](const std::string& body) {
    const Edit* const found = edit_to(p, edits, kernel_of(body));
    return found == nullptr ? -1 : found->tier;
  };
  // The second reads what the first stores.
  CHECK(order("o[2] = q[3]; o[3] = q[2]; o[0] = alpha; alpha = q[0];") == 0);
  CHECK(order("o[2] = q[3]; alpha = q[0]; o[3] = q[2]; o[0] = alpha;") == 1);
}

TEST_CASE("an argument is as in another call, a place in a tile as a place in all") {
  const std::string head =
      "__global__ void k(float* o, int n, int stride, int limit) {\n"
      "  int row = blockIdx.y * 32 + threadIdx.y;\n  int col = blockIdx.x * 32 + threadIdx.x;\n";
  const auto kernel = [&](const std::string& condition, const std::string& last) {
    return head + "  load(o, n, stride);\n  load(o + 1, n, " + last + ");\n  if (" + condition +
           ") o[row * n + col] = 0;\n}\n";
  };
  const Program p = program_of(kernel("threadIdx.x > threadIdx.y", "limit"));
  const std::vector<Edit> edits = propose_edits(p);
  const Edit* const argument = edit_to(p, edits, kernel("threadIdx.x > threadIdx.y", "stride"));
  REQUIRE(argument != nullptr);
  CHECK(argument->tier == 0);
  const Edit* const place = edit_to(p, edits, kernel("col > row", "limit"));
  REQUIRE(place != nullptr);
  CHECK(place->operation == "index of all");
}

TEST_CASE(
    "what cannot compile is not proposed: shifts of floats, other members of fragments, const "
    "where it is not") {
  const std::string text =
      "__device__ void f(const float* a, float* b, int n);\n"
      "__global__ void k(const float* q, float* o, F c, int n) {\n"
      "  c.x[n] *= q[n];\n  f(q, o, n);\n}\n";
  const Program p = program_of(text);
  for (const Edit& e : propose_edits(p)) {
    const std::string after = edited(*p.files[0], e);
    INFO(after);
    CHECK(after.find("<<=") == after.npos);
    CHECK(after.find("c.y[") == after.npos);
    CHECK(after.find("f(o, q") == after.npos);
  }
}

TEST_CASE("of what is added to a pointer, edits leave a pointer and a number") {
  const std::string text = kernel_of("const float* p = q + n * m; o[n] = p[0];");
  const Program p = program_of(text);
  const std::vector<Edit> edits = propose_edits(p);
  const auto becomes = [&](const std::string& sum) {
    return edit_to(p, edits, kernel_of("const float* p = " + sum + "; o[n] = p[0];")) != nullptr;
  };
  CHECK(becomes("q - n * m"));
  CHECK(becomes("q"));
  CHECK(becomes("q + n"));
  for (const char* const none :
       {"q * n * m", "q / n * m", "n * m", "(q + n) * m", "n + q * m", "m + n * q"}) {
    INFO(none);
    CHECK_FALSE(becomes(none));
  }
}

TEST_CASE("what no compiler takes, or nobody computes with, is not proposed") {
  const Program p = program_of(
      "template <int N, int M> __global__ void k(float* o);\n"
      "void launch(float* o) {\n"
      "  const int n = 4, m = 2; auto kernel = k<n, m>;\n"
      "  if (o == nullptr)\n"
      "    std::cerr << \"nothing of \" << n;\n"
      "  kernel<<<1, 1>>>(o);\n"
      "}\n" +
      kernel_of("q += n; o[n] = __half2float(q[m]);"));
  const std::vector<Edit> edits = propose_edits(p);
  const auto made = [&](const char* text) {
    return std::any_of(edits.begin(), edits.end(), [&](const Edit& edit) {
      return edited(*p.files[0], edit).find(text) != std::string::npos;
    });
  };
  CHECK_FALSE(made("k<=n"));
  CHECK_FALSE(made("k>n"));
  CHECK_FALSE(std::any_of(edits.begin(), edits.end(), [](const Edit& e) { return e.line == 5; }));
  CHECK_FALSE(made("q = n;"));
  CHECK_FALSE(made("q *= n;"));
  CHECK(made("q -= n;"));
  CHECK_FALSE(made("o[n] = q[m];"));
  CHECK(made("o[n] = __half2float(q[n]);"));
}

TEST_CASE("no edit is proposed twice, and none changes nothing") {
  const Program p = program_of(kernel_of("for (int i = 0; i < n; ++i) o[i] = q[i] * alpha;"));
  std::set<std::string> seen;
  for (const Edit& e : propose_edits(p)) {
    INFO(e.operation << ": " << e.text);
    const std::string after = edited(*p.files[0], e);
    CHECK(after != p.files[0]->text);
    CHECK(seen.insert(after).second);
    CHECK(e.size > 0);
  }
}

TEST_CASE("a schema holds every edit that fits, and the text as it was") {
  const std::string text = kernel_of(
      "  for (int i = 0; i < n; ++i) {\n    o[i] = q[i] * alpha;\n    __syncthreads();\n  }\n");
  const Program p = program_of(text);
  const std::vector<Edit> edits = propose_edits(p);
  std::vector<int> which;
  for (std::size_t i = 0; i < edits.size(); ++i)
    if (edits[i].way != Way::kAlone) which.push_back(static_cast<int>(i));
  const Schema schema = make_schema(p, edits, which);
  CHECK(schema.edits.size() + schema.left.size() == which.size());
  CHECK(schema.first.size() == schema.edits.size());
  CHECK(schema.left.size() < which.size() / 10);
  // Each once, in the places that hold them.
  for (std::size_t n = 1; n <= schema.edits.size(); ++n) {
    CHECK_THAT(schema.texts[0], contains("#line " + std::to_string(n) + " \"attn-diag-edit\""));
    CHECK(schema.first[n - 1] <= static_cast<int>(n));
  }
  // Lines of the user's are told after each.
  CHECK_THAT(schema.texts[0], contains("#line 3 \"/x/k.cu\""));
  CHECK(make_schema(p, edits, {}).texts[0] == text);
}

TEST_CASE("edits within a macro's arguments have no lines of their own") {
  const Program p =
      program_of("#define AT(x) ((x) + 1)\n__device__ int f(int n) { return AT(n); }\n");
  const std::vector<Edit> edits = propose_edits(p);
  bool found = false;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].text != "n + 1") continue;
    found = true;
    CHECK(make_schema(p, edits, {static_cast<int>(i)}).texts[0].find("#line") == std::string::npos);
  }
  CHECK(found);
}

TEST_CASE("a compiler's errors tell which edits are not possible") {
  const Blame g = blamed(
      "attn-diag-edit:4:82: error: operands to '?:' have different types\n"
      "x.cu: In instantiation of 'void f() [with T = int]':\n"
      "attn-diag-edit:7:3:   required from here\n"
      "/usr/include/y.h:5:1: error: no match for 'operator+'\n"
      "/x/k.cu:9:2: error: 'a' is not a constant\n");
  CHECK(g.numbers == std::vector<int>{4, 7});
  REQUIRE(g.lines.size() == 1);
  CHECK(g.lines[0] == std::pair<std::string, int>{"/x/k.cu", 9});
  const Blame clang = blamed(
      "/usr/include/y.h:5:1: error: invalid operands to binary expression\n"
      "attn-diag-edit:12:3: note: in instantiation of function template specialization\n");
  CHECK(clang.numbers == std::vector<int>{12});
  CHECK(blamed("confused by earlier errors, bailing out\n").lines.empty());
}

TEST_CASE("a diff has the changed lines and three around them") {
  const std::string before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
  CHECK(unified_diff("k.cu", before, before).empty());
  CHECK(unified_diff("k.cu", before, "1\n2\n3\n4\nfive\n6\n7\n8\n9\n") ==
        "--- a/k.cu\n+++ b/k.cu\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  CHECK(unified_diff("k.cu", "1\n2\n", "1\n") == "--- a/k.cu\n+++ b/k.cu\n@@ -1,2 +1 @@\n 1\n-2\n");
  CHECK(unified_diff("k.cu", "1\n2", "1\nx") ==
        "--- a/k.cu\n+++ b/k.cu\n@@ -1,2 +1,2 @@\n 1\n-2\n\\ No newline at end of file\n+x\n\\ No "
        "newline at end of file\n");
}

}  // namespace
}  // namespace attn_diag::repair

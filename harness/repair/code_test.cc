#include "harness/repair/code.h"

#include <algorithm>
#include <string>

#include "harness/repair/edit.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::repair {
namespace {

Program program_of(const std::string& text) { return take_apart({{"/x/k.cu", "k.cu", text}}); }

// The type by which the function knows a name; "none" if it does not.
std::string type_of(const DeviceFunction& f, const std::string& name) {
  for (const Variable& v : f.variables)
    if (v.name == name) return v.type;
  return "none";
}

int count(const DeviceFunction& f, StatementKind kind) {
  return static_cast<int>(std::count_if(f.statements.begin(), f.statements.end(),
                                        [&](const Statement& s) { return s.kind == kind; }));
}

TEST_CASE("functions of the device and those that launch are taken apart, others are left alone") {
  const Program p = program_of(
      "#define DEVICE __device__ __forceinline__\n"
      "DEVICE float twice(float x) { return 2 * x; }\n"
      "struct Op { __device__ float operator()(float x) const { return x; } };\n"
      "template <int N> __global__ void k(float* o) { o[threadIdx.x] = twice(N); }\n"
      "void other(float* o) { o[0] = 1; }\n"
      "void launch(float* o) { k<4><<<dim3(1, 2), 32>>>(o); }\n"
      "void call(float* o) { launch(o); }\n");
  REQUIRE(p.files[0]->functions.size() == 5);
  CHECK(p.files[0]->functions[0].name == "twice");
  CHECK(p.files[0]->functions[2].name == "k");
  CHECK(p.files[0]->functions[2].is_kernel);
  CHECK(!p.files[0]->functions[2].on_host);
  const DeviceFunction& launch = p.files[0]->functions[3];
  CHECK(launch.on_host);
  CHECK(launch.expressions.at(static_cast<std::size_t>(launch.statements.at(1).expressions.at(0)))
            .parts.size() == 4);
  CHECK(p.files[0]->functions[4].name == "call");
  CHECK(p.files[0]->functions[4].on_host);
}

TEST_CASE("auto is the type of the first value") {
  const Program p = program_of(
      "__device__ float larger(float a, float b) { return a > b ? a : b; }\n"
      "__device__ auto unknown(float a) { return a; }\n"
      "__global__ void k(const float* q, int n) {\n"
      "  __shared__ float s[4][8];\n"
      "  auto const a = q[n];\n  auto b = larger(a, 1.f);\n  auto* c = q + n;\n"
      "  auto row = s[n];\n  for (auto i = 0; i < n; ++i) s[0][i] = b;\n"
      "  auto d = unknown(a);\n  auto e = d;\n}\n");
  const DeviceFunction& f = p.files[0]->functions.at(2);
  CHECK(type_of(f, "a") == "float");
  CHECK(type_of(f, "b") == "float");
  CHECK(type_of(f, "c") == "float*");
  CHECK(type_of(f, "row") == "float*");
  CHECK(type_of(f, "i") == "int");
  CHECK(type_of(f, "d") == "auto");
  CHECK(type_of(f, "e") == "auto");
}

TEST_CASE("variables are known by type and by where they can be used") {
  const Program p = program_of(
      "using i64 = long long;\nconstexpr int kTile = 32;\n#define ROWS 4\n"
      "__global__ void k(const float* __restrict__ q, int n, const float scale) {\n"
      "  __shared__ float s[kTile][ROWS];\n"
      "  const i64 at = blockIdx.x * n;\n"
      "  for (int i = 0, e = n; i < e; ++i) { float x = q[i]; s[i][0] = x; }\n"
      "  auto f = [&](int lane) { return lane + 1; };\n"
      "}\n");
  const DeviceFunction& f = p.files[0]->functions.at(0);
  CHECK(type_of(f, "q") == "float*");
  CHECK(type_of(f, "n") == "int");
  CHECK(type_of(f, "scale") == "float");
  CHECK(type_of(f, "s") == "float[][]");
  CHECK(type_of(f, "at") == "int64_t");
  CHECK(type_of(f, "i") == "int");
  CHECK(type_of(f, "e") == "int");
  CHECK(type_of(f, "x") == "float");
  CHECK(type_of(f, "lane") == "int");
  CHECK(type_of(f, "kTile") == "int");
  CHECK(type_of(f, "ROWS") == "int");
  CHECK(type_of(f, "float") == "none");
  for (const Variable& v : f.variables) {
    if (v.name == "scale") CHECK(v.is_const);
    if (v.name == "q") CHECK(v.const_elements);
    if (v.name != "i") continue;
    CHECK(p.files[0]->line(v.from) == 7);
    CHECK(p.files[0]->line(v.to) == 8);  // to the end of the loop
  }
}

TEST_CASE("statements are told apart, with the conditions that guard them") {
  const Program p = program_of(
      "__global__ void k(float* o, int n) {\n"
      "  int i = threadIdx.x;\n"
      "  if (i < n && n > 0) o[i] = 1; else return;\n"
      "  #pragma unroll\n"
      "  for (int j = 0; j < 4; j++) o[j] += 1;\n"
      "  do { --n; } while (n > 3);\n"
      "  while (n) n /= 2;\n"
      "  __syncthreads();\n"
      "}\n");
  const DeviceFunction& f = p.files[0]->functions.at(0);
  CHECK(count(f, StatementKind::kDeclaration) == 1);
  CHECK(count(f, StatementKind::kIf) == 1);
  CHECK(count(f, StatementKind::kLoop) == 3);
  CHECK(count(f, StatementKind::kReturn) == 1);
  CHECK(count(f, StatementKind::kExpression) == 5);
  for (const Statement& s : f.statements)
    if (s.kind == StatementKind::kIf) {
      REQUIRE(s.conditions.size() == 1);
      const Expression& e = f.expressions[static_cast<std::size_t>(s.conditions[0])];
      CHECK(p.files[0]->words(e.begin, e.end) == "i < n && n > 0");
    }
}

TEST_CASE("expressions follow the strength of operators, casts and templates") {
  const Program p = program_of(
      "__global__ void k(float* o, int a, int b, int c) {\n"
      "  o[(size_t)a * b + c >> 2] = f<4, 8>(a < b, c > (a));\n"
      "  o[0] = x.a<half>();\n"
      "  set(kernel<a, 16>, a);\n"
      "}\n");
  const DeviceFunction& f = p.files[0]->functions.at(0);
  const auto text = [&](const Expression& e) { return p.files[0]->words(e.begin, e.end); };
  std::vector<std::string> binary, casts, calls, constants;
  for (const Expression& e : f.expressions) {
    if (e.kind == ExpressionKind::kBinary) binary.push_back(text(e));
    if (e.kind == ExpressionKind::kCast) casts.push_back(text(e));
    if (e.kind == ExpressionKind::kCall) calls.push_back(text(e));
    if (e.constant) constants.push_back(text(e));
  }
  std::sort(binary.begin(), binary.end());
  CHECK(binary == std::vector<std::string>{"(size_t)a * b", "(size_t)a * b + c",
                                           "(size_t)a * b + c >> 2", "a < b", "c > (a)"});
  CHECK(casts == std::vector<std::string>{"(size_t)a"});
  CHECK(calls == std::vector<std::string>{"f<4, 8>(a < b, c > (a))", "x.a<half>()",
                                          "set(kernel<a, 16>, a)"});
  CHECK(constants == std::vector<std::string>{"4", "8", "half", "a", "16"});
}

TEST_CASE("what is no C++ is said, and other files are taken apart all the same") {
  const Program p = take_apart({{"/x/a.cu", "a.cu", "__global__ void k() { (; }"},
                                {"/x/b.cu", "b.cu", "__device__ int one() { return 1; }"}});
  CHECK_FALSE(p.files[0]->problem.empty());
  CHECK(p.files[0]->functions.empty());
  CHECK(p.files[1]->functions.size() == 1);
  CHECK_FALSE(propose_edits(p).empty());
}

TEST_CASE("deep nesting ends the look at an expression, not the program") {
  std::string deep(5000, '(');
  deep += "1" + std::string(5000, ')');
  const Program p = program_of("__device__ int one() { return " + deep + "; }");
  CHECK(p.files[0]->functions.size() == 1);
}

}  // namespace
}  // namespace attn_diag::repair

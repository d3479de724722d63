#include "harness/toolchain/source/translate.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "harness/testing/catch_for_tests.h"

using attn_diag::source::Item;
using attn_diag::source::ItemKind;
using attn_diag::source::translate;
using attn_diag::source::Translation;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What is written about the only launch of a text.
std::string launched(const std::string& text) {
  const Translation translation = translate(text, "x.cu");
  if (translation.items.size() != 1 || translation.items[0].kind != ItemKind::kLaunch)
    return "not one launch";
  return translation.items[0].text;
}

std::string error(const std::string& text) {
  const Translation translation = translate(text, "x.cu");
  if (translation.errors.size() != 1) return "not one error";
  return std::to_string(translation.errors[0].line) + ": " + translation.errors[0].message;
}

// The text without what the pass adds around the kernel's name: for short expectations.
std::string translated(const std::string& text) { return translate(text, "x.cu").text; }

}  // namespace

TEST_CASE("a launch is recognised with whatever names its kernel") {
  for (const char* launch :
       {"k<<<1, 2>>>", "k<4><<<g, b, s, st>>>", "k<A<B<int>>, 3><<<g, b>>>",
        "ns::k<(a > b)><<<g, b>>>", "::k<<<g, b>>>", "A<T>::template k<T><<<g, b>>>",
        "this->k_<<<g, b>>>", "p.kernels[i + 1]<<<g, b>>>", "(*pick(x))<<<g, b>>>",
        "k<<<dim3(a, b<2>()), f<A<B<int>>>(c), x >> 2>>>", "k<<<{1, 2}, n>>1>>>",
        "k<<<g, f<A<B>>>>>"}) {
    INFO(launch);
    CHECK(launched("void f() { return " + std::string(launch) + "(x, y); }") == launch);
    CHECK(launched("void f() { if (a) " + std::string(launch) + "(x); else g(); }") == launch);
  }
}

TEST_CASE("a launch over several lines leaves every token on its line") {
  const std::string text = translated("void f() {\nk<T,\n 2><<<\ng,\nb\n>>>(\nx);\nint last;\n}");
  CHECK(std::count(text.begin(), text.end(), '\n') == 8);
  std::istringstream lines(text);
  std::vector<std::string> line(9);
  for (std::string& l : line) std::getline(lines, l);
  CHECK(contains(line[3], "g,"));
  CHECK(contains(line[6], "x);"));
  CHECK(line[7] == "int last;");
}

TEST_CASE("a launch that cannot be is an error in the user's terms") {
  CHECK(contains(error("void f() {\n  k<<<1>>>(x); }"), "2: the launch of 'k' has 1 values"));
  CHECK(contains(error("void f() { k<<<1, 2; }"), "has no '>>>('"));
  CHECK(contains(error("void f() { ; <<<1, 2>>>(x); }"), "without a kernel before it"));
}

TEST_CASE("dynamic shared memory becomes a reference, in functions that use it") {
  CHECK(contains(translated("void k() { extern __shared__ __align__(16) float a[], b[][4]; }"),
                 "float (&a)[] = *static_cast<float (*)[]>"));
  CHECK(contains(translated("void k() { extern __shared__ float b[][4]; }"),
                 "float (&b)[][4] = *static_cast<float (*)[][4]>"));
  CHECK(contains(
      translated("void k() { __shared__ extern alignas(1024) volatile unsigned char s[]; }"),
      "volatile unsigned char (&s)[] ="));
  const std::string text = translated(
      "extern __shared__ std::uint4 s[];\n"
      "void uses() { s[0] = {}; }\n"
      "void has_its_own(int* s) { s[0] = 1; }\n"
      "void does_not() { x.s = 1; }\n");
  CHECK(contains(text, "void uses() { std::uint4 (&s)[] ="));
  CHECK(contains(text, "void has_its_own(int* s) { s[0]"));
  CHECK(contains(text, "void does_not() { x.s"));
  CHECK_FALSE(contains(text, "extern"));
}

TEST_CASE("wgmma's fences and waits have nothing to order") {
  for (const char* text : {"wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;",
                           "wgmma.wait_group.sync.aligned 0;"})
    CHECK(translated(std::string("void k() { asm volatile(\"") + text + "\\n\" ::: \"memory\"); }")
              .find("wgmma") == std::string::npos);
  CHECK(contains(error("void k() { asm volatile(\"wgmma.wait_group.sync.aligned;\"); }"), "wgmma"));
}

TEST_CASE("static shared memory is guarded on both sides, aligned, and known to the executor") {
  const std::string text = translated("void k() { __shared__ __align__(8) float a[4], b; }");
  CHECK(contains(text, "attn_diag_guard_5_before["));
  CHECK(contains(text, "[[gnu::used, gnu::aligned(::attn_diag::host::kStaticAlignment)]] "));
  CHECK(contains(text, "attn_diag_guard_5_behind["));
  CHECK(contains(text, "struct __attribute__((aligned(8))) attn_diag_aligned_5 {};"));
  for (const char* name : {"\"a\", __PRETTY_FUNCTION__", "\"b\", __PRETTY_FUNCTION__"})
    CHECK(contains(text, name));
}

TEST_CASE("static shared memory is thread-local whatever the order of its words") {
  CHECK(contains(translated("void k() { __shared__ alignas(16) half s[2][3]; }"),
                 "alignas(16) static thread_local  half s[2][3];"));
  CHECK(contains(translated("void k() { static __shared__ float a, b[2]; }"),
                 "static thread_local float a, b[2];"));
  CHECK(contains(translated("void k() { volatile float __shared__ a; }"),
                 "volatile float static thread_local a;"));
  CHECK(contains(translated("void k() { __shared__ float a[4], b; }"),
                 "static_assert(sizeof(a) + sizeof(b) <= ::attn_diag::host::kMostStaticShared"));
}

TEST_CASE("qualifiers are left out or become attributes") {
  CHECK(translated("__global__ void k(const __grid_constant__ P p);") == " void k(const  P p);");
  CHECK(translated("auto f = [=] __device__ (float x) { return x; };") ==
        "auto f = [=]  (float x) { return x; };");
  CHECK(translated("__device__ __forceinline__ int f();") ==
        " inline __attribute__((always_inline)) int f();");
  CHECK(translated("static inline __device__ __forceinline__ int f();") ==
        "static inline  __attribute__((always_inline)) int f();");
  CHECK(translated("struct __align__(16) A {};") == "struct __attribute__((aligned(16))) A {};");
  CHECK(translated("__attribute__((__noinline__)) int f();") ==
        "__attribute__((__noinline__)) int f();");
  CHECK(contains(translated("__global__ void __launch_bounds__(N * 2, 1) k() {}"),
                 "{ ::attn_diag::host::check_launch_bounds(N * 2, \"x.cu\", 1);}"));
  CHECK(contains(error("__global__ void __cluster_dims__(2, 1, 1) k() {}"), "unsupported"));
}

TEST_CASE("system headers are left as they are") {
  const std::string text =
      "# 1 \"/usr/include/x.h\" 1 3\n__device__ __shared__ a <<< b;\n# 2 \"x.cu\" 2\n";
  CHECK(translated(text) == text);
}

TEST_CASE("pragmas of nvcc go, others stay") {
  CHECK(translated(
            "#pragma unroll 4\nfor (;;) {}\n#pragma nv_diag_suppress 1\n#pragma GCC unroll 2\n") ==
        "\nfor (;;) {}\n\n#pragma GCC unroll 2\n");
}

TEST_CASE("inline PTX that is not known is an error that names instruction, file and line") {
  CHECK(contains(
      error("void k() {\n asm volatile(\"add.u32 %0, %0, 1;\\n\"\n "
            "\"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0}, 1;\" : \"+r\"(x)); }"),
      "3: unsupported: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16: "));
  CHECK(
      contains(error("void k() { asm(\"frob.u32 %0;\" : \"=r\"(x)); }"), "unsupported: frob.u32"));
  CHECK(contains(error("void k() { asm(\"add.foo.u32 %0, %0, 1;\" : \"+r\"(x)); }"),
                 ".foo is not understood"));
  CHECK(contains(error("void k() { asm(\"add.u32 %0, %1, 1;\" : \"=r\"(x)); }"),
                 "there is no operand %1"));
  CHECK(contains(error("void k() { asm(\"add.u32 %0, y, 1;\" : \"=r\"(x)); }"),
                 "'y' is not declared"));
  CHECK(
      contains(error("void k() { asm(\"add.u32 %0, 1, 1;\" : \"=m\"(x)); }"), "constraint \"=m\""));
  CHECK(contains(error("void k() { asm(\"cp.async.bulk.tensor.2d.shared::cluster [%0], [%1];\" :: "
                       "\"r\"(x), \"l\"(y)); }"),
                 "TMA"));
}

TEST_CASE("an asynchronous copy of a size that the instruction has not is refused") {
  const auto copy = [](const std::string& cache, const std::string& bytes) {
    return "void k() { asm(\"cp.async." + cache + ".shared.global [%0], [%1], " + bytes +
           ";\" :: \"r\"(x), \"l\"(y)); }";
  };
  for (const char* bytes : {"4", "8", "16"})
    CHECK(translate(copy("ca", bytes), "x.cu").errors.empty());
  CHECK(translate(copy("cg", "16"), "x.cu").errors.empty());
  CHECK(contains(error(copy("cg", "4")), "cp.async.cg copies 16 bytes, not 4"));
  CHECK(contains(error(copy("ca", "2")), "cp.async.ca copies 4, 8 or 16 bytes, not 2"));
}

TEST_CASE("an empty asm statement is a compiler's barrier and stays") {
  CHECK(translated("void k() { asm volatile(\"\" ::: \"memory\"); }") ==
        "void k() { asm volatile(\"\" ::: \"memory\"); }");
}

TEST_CASE("each instruction of an asm statement is translated on its own line") {
  const std::string text = translated(
      "void k() {\nasm volatile(\n\"add.u32 %0, %0, 1;\\n\"\n\"mul.lo.u32 %0, %0, 3;\\n\"\n: "
      "\"+r\"(x)\n: : \"memory\");\nint last; }");
  std::istringstream lines(text);
  std::vector<std::string> line(7);
  for (std::string& l : line) std::getline(lines, l);
  CHECK(contains(line[2], "::add("));
  CHECK(contains(line[3], "::mul_lo("));
  CHECK(line[6] == "int last; }");
}

TEST_CASE("brackets without their counterpart are named") {
  CHECK(contains(error("void k() {\n f(1;\n}"), "closes no"));
  CHECK(contains(error("void k() {\n"), "1: '{' is never closed"));
}

TEST_CASE("pointers into dynamic shared memory are told to the checker by their names") {
  const auto told = [](const std::string& body) {
    const std::string text =
        translated("__global__ void k(float* g) { extern __shared__ float smem[]; " + body + " }");
    std::string names;
    for (std::size_t at = text.find("named_shared(\""); at != std::string::npos;
         at = text.find("named_shared(\"", at + 1)) {
      const std::size_t open = text.find('"', at);
      names += text.substr(open + 1, text.find('"', open + 1) - open - 1) + ' ';
    }
    return names;
  };
  CHECK(told("") == "smem ");
  CHECK(told("float* sQ = smem; float *sK = sQ + 64, *sV = sK + 64;") == "smem sQ sK sV ");
  CHECK(told("half* const sP = reinterpret_cast<half*>(smem + n); { auto* a = &smem[4]; }") ==
        "smem sP a ");
  CHECK(told("float* p = g; float x = *smem; x * smem[0]; return; float* other = f(g);") ==
        "smem ");
  CHECK(told("for (float* p = smem; p < e; ++p) f(p); if (x) float* q = smem;") == "smem ");
  CHECK(told("struct A { float* p = smem; }; float* q = smem;") == "smem q ");
}

TEST_CASE("local arrays of device code without a value are told to the checker") {
  const auto told = [](const std::string& body) {
    const std::string text = translated("template <class T> __device__ void f() {" + body + "}");
    std::string names;
    for (std::size_t at = text.find("declared_without_value("); at != std::string::npos;
         at = text.find("declared_without_value(", at + 1)) {
      const std::size_t open = text.find('(', at);
      names += text.substr(open + 1, text.find(',', open) - open - 1) + ' ';
    }
    return names;
  };
  CHECK(told("float a[4];") == "a ");
  CHECK(told("for (;;) { unsigned int a[4][N]; std::array<int, 2> b[2], c[3]; }") == "a b c ");
  CHECK(told("typename T::Value a[N]; alignas(16) half b[8]; if (x) y[1]; else z[2];") == "a b ");
  CHECK(told("\n#pragma unroll\nfloat a[2];\n") == "a ");
  CHECK(told("float a[4] = {}; static int b[2]; const float* c[2]; x[3]; return x[0];") == "");
  CHECK(told("struct A { float a[4]; float b() { return a[0]; } }; __shared__ float s[4];") == "");
  CHECK(translated("void f() { float a[4]; }").find("declared_without_value") == std::string::npos);
  CHECK(translated("__device__ constexpr int f() { int a[4]; return 0; }")
            .find("declared_without_value") == std::string::npos);
}

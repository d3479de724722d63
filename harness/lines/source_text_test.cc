#include "harness/lines/source_text.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "harness/testing/temporary_directory.h"

namespace attn_diag::lines {

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
         "a.tile[i][j] += y;\nif (tile[i] == 3) f(x & tile[1]);\nother[1] = tile[\n  2];\n"
         "struct Stage {\n  float k[4], v[4];\n};\ncopy(&to.v[0], v + 1);\nx = to->v[i] & "
         "to.k[1];\n";
  SourceText text;
  CHECK(text.lines_that_store(path, "tile") == std::vector{4, 6, 7});
  CHECK(text.lines_that_store(path, "other") == std::vector{9});
  CHECK(text.lines_that_store(path, "a") == std::vector{7});
  CHECK(text.lines_that_store(path, "v") == std::vector{14});
  CHECK(text.lines_that_store(path, "k").empty());
  CHECK(text.member_declared_above(path, 15, "v") == 12);
  CHECK(text.member_declared_above(path, 15, "x") == 0);
  CHECK(text.is_shared(path, "tile"));
  CHECK(text.is_shared(path, "other"));
  CHECK_FALSE(text.is_shared(path, "local"));
  CHECK_FALSE(text.is_shared(path, "kRows"));
  CHECK_FALSE(text.is_shared(folder / "none.cu", "tile"));
}

TEST_CASE("what a function of the file has, and what it ignores") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder / "a.cu";
  std::ofstream(path)
      << "float of_all(float x) {\n  x = max(x, y);\n  return x;\n}\n"
         "__global__ void begin(float* m, float* l, int n) {\n  l[n] = of_all(0);\n}\n"
         "__global__ void end(float* m) {\n  m[0] += 1;\n}\n"
         "struct Shape {\n  int n;\n  int rows() const { return n; }\n};\n"
         "void run(int d) {\n  DISPATCH(d, [&] {\n    end<<<1, 1>>>(m);\n  });\n  of_all(1);\n}\n"
         "void nothing(int d) {}\nvoid more() {\n  end<<<1, 1>>>(m);\n}\n";
  SourceText text;
  CHECK(text.lines_of_function(path, "of_all") == std::vector{2, 3});
  CHECK(text.lines_of_function(path, "max").empty());
  CHECK(text.lines_of_function(path, "rows") == std::vector{13});
  CHECK(text.launches_within(path, 16));
  CHECK(text.launches_within(path, 17));
  CHECK_FALSE(text.launches_within(path, 19));
  CHECK_FALSE(text.launches_within(path, 21));
  CHECK(text.ends_of_functions_that_ignore(path, "m") == std::vector{7});
  CHECK(text.ends_of_functions_that_ignore(path, "l").empty());
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
  CHECK(text.barrier_above(file, 12) == 6);
  CHECK(text.barrier_above(file, 13) == 12);
  CHECK(text.barrier_above(file, 6) == 0);
  CHECK(text.function_begin(file, 12) == 1);
  CHECK(text.function_begin(file, 99) == 99);
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
  const auto moved = [&](int line, const char* name) {
    std::string all;
    for (const auto& one : text.moved_by_block(path.string(), line, name))
      all += one.name + std::to_string(one.line) + " ";
    return all;
  };
  CHECK(moved(9, "lse") == "q3 o3 k5 ");
  CHECK(moved(4, "lse") == "q3 o3 ");
  CHECK(moved(9, "o").empty());
  CHECK(moved(2, "lse").empty());
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
  float low = -1e30f, high[2] = {0.f, 0.f}, given = 0.f, late = 0.f;
  float none = 0.f;
  int count = 0, other = 0;
  fill(given);
  for (int i = 0; i < n; ++i) {
    acc = acc * s[i] + zero;
    low = fmaxf(low, s[i]);
    m = -INFINITY;
  }
  o[0] = acc / l + m + low * high[1] + given + none + count + late;
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
  CHECK(found == std::vector<std::tuple<std::string, std::string, int>>{{"l", "acc", 8},
                                                                        {"m", "acc", 8},
                                                                        {"zero", "acc", 8},
                                                                        {"high", "low", 9},
                                                                        {"late", "low", 9}});
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

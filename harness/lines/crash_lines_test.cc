#include "harness/lines/crash_lines.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "harness/testing/temporary_directory.h"

namespace attn_diag::lines {
namespace {

constexpr const char* kSource = R"(int other(int n) {
  int at = n;
  return at;
}
__device__ float load(const float* p, int i) {
  return p[i];
}
__global__ void attend(const float* k, float* o, int n) {
  const int warps = blockDim.x / 64;
  int at = threadIdx.x * n;
  const float* row = k + at;
  o[at] = *row;
  o[n] = load(row, at << 30);
  o[0] = n / warps + n % (warps - 1);
  for (int i = 0; i <= n; ++i)
    o[i] = 0;
}
__device__ void copy(unsigned to, const float* from) {
  asm("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from));
}
__device__ void spin(volatile int* flag, int n) {
  for (int i = 0; i < n; ++i) flag[i] = 0;
  for (int i = 0; i < n; ++i) {
    int seen = 0;
    while (seen == 0)
      seen = flag[i];
  }
}
__global__ void tiles(const float* k, int n, int d) {
  extern __shared__ float shared[];
  float* tile = &shared[n * d];
  const int head = gridDim.y;
  const int begin = head * n * d;
  for (int j = 0; j < n; ++j)
    tile[j * d] = k[begin + j * d];
}
__global__ void strides(const float* k, float* o, int n) {
  constexpr int kAll = 64;
  __shared__ float parts[kAll];
  const int begin = blockIdx.x * n * kAll;
  for (int i = threadIdx.x; i < kAll * 2; i += blockDim.x)
    parts[i % kAll] += k[begin + i];
}
)";

struct Source {
  testing::TemporaryDirectory folder;
  std::string path = folder / "k.cu";
  Source() { std::ofstream(path) << kSource; }
  std::vector<int> lines(std::vector<int> stack, CrashOf of) const {
    std::vector<host::SourcePlace> places;
    for (const int line : stack) {
      host::SourcePlace place;
      place.file = path;
      place.line = line;
      places.push_back(place);
    }
    std::vector<int> found;
    for (const LineSuspect& suspect : crash_lines(places, of, "crashes").suspects)
      found.push_back(suspect.place.line);
    return found;
  }
};

}  // namespace

TEST_CASE("a crash names its line, and what makes the address or divisor there") {
  const Source source;
  CHECK(source.lines({12}, CrashOf::kAddress) == std::vector{11, 12, 10});
  CHECK(source.lines({14}, CrashOf::kDivisor) == std::vector{14, 9});
  CHECK(source.lines({14}, CrashOf::kOther) == std::vector{14});
}

TEST_CASE("a loop that goes one step too far comes before what crashes in it") {
  const Source source;
  CHECK(source.lines({16}, CrashOf::kAddress) == std::vector{15, 16});
  CHECK(source.lines({16}, CrashOf::kOther) == std::vector{16});
}

TEST_CASE("what makes the address of a crash has makers itself") {
  const Source source;
  // row, which is only gone through there, and of that at.
  CHECK(source.lines({12}, CrashOf::kAddress) == std::vector{11, 12, 10});
}

TEST_CASE("what computes an index comes before loops that count and pointers into shared memory") {
  const Source source;
  CHECK(source.lines({35}, CrashOf::kAddress) == std::vector{35, 33, 32, 31, 34});
  CHECK(source.lines({42}, CrashOf::kAddress) == std::vector{42, 40, 38, 41});
}

TEST_CASE("what a function that crashes was given comes of its caller") {
  const Source source;
  // The caller, what crashes, and what makes what was given: row and at.
  CHECK(source.lines({6, 13}, CrashOf::kAddress) == std::vector{13, 6, 11, 10});
  CHECK(source.lines({19, 13}, CrashOf::kBounds) == std::vector{13, 19, 11, 10});
  CHECK(source.lines({6}, CrashOf::kAddress) == std::vector{6});
}

TEST_CASE("of a run that does not end the loops around where it was are told") {
  const Source source;
  const std::vector<host::SourcePlace> stack = {{source.path, 26, "spin"},
                                                {source.path, 16, "attend"}};
  std::vector<int> found;
  for (const LineSuspect& suspect : endless_lines(stack, "does not end").suspects)
    found.push_back(suspect.place.line);
  CHECK(found == std::vector{25, 23, 15, 26});
  CHECK(endless_lines({{source.path, 6, "load"}}, "does not end").answer == LineAnswer::kNotLooked);
}

TEST_CASE("of a crash without lines none is told") {
  CHECK(crash_lines({}, CrashOf::kAddress, "crashes").answer == LineAnswer::kNotLooked);
  const Source source;
  CHECK(source.lines({99}, CrashOf::kAddress).empty());
}

}  // namespace attn_diag::lines

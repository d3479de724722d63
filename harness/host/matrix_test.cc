#include <cuda_bf16.h>

#include <cmath>
#include <random>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

// A matrix in memory, as its elements' type, and in double.
struct Matrix {
  int rows, columns;
  bool by_columns;
  std::vector<double> value;  // row by row
  alignas(32) std::byte memory[32 * 32 * 4]{};

  std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(by_columns ? column * rows + row : row * columns + column);
  }
  template <class T>
  void write(std::mt19937& random) {
    value.clear();
    std::uniform_int_distribution<int> integers(-8, 8);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        const T x(static_cast<float>(integers(random)));
        std::memcpy(memory + at(i, j) * sizeof x, &x, sizeof x);
        value.push_back(static_cast<float>(x));
      }
  }
  template <class T>
  double read(int row, int column) const {
    T x;
    std::memcpy(&x, memory + at(row, column) * sizeof x, sizeof x);
    return static_cast<float>(x);
  }
};

}  // namespace

TEST_CASE("products of all shapes, types and memory orders are right") {
  std::mt19937 random(1);
  for (const int m : {16, 32, 8})
    for (const MatrixTypes types :
         {MatrixTypes::kHalfFloatFloat, MatrixTypes::kHalfHalfHalf, MatrixTypes::kHalfHalfFloat,
          MatrixTypes::kHalfFloatHalf, MatrixTypes::kBfloat16})
      for (int orders = 0; orders < 8; ++orders) {
        CAPTURE(m, static_cast<int>(types), orders);
        const int n = 256 / m;
        const bool bfloat16 = types == MatrixTypes::kBfloat16;
        const bool half_c =
            types == MatrixTypes::kHalfHalfHalf || types == MatrixTypes::kHalfHalfFloat;
        const bool half_d =
            types == MatrixTypes::kHalfHalfHalf || types == MatrixTypes::kHalfFloatHalf;
        Matrix a{m, 16, (orders & 1) != 0, {}}, b{16, n, (orders & 2) != 0, {}},
            c{m, n, (orders & 4) != 0, {}}, d = c;
        for (Matrix* x : {&a, &b}) {
          if (bfloat16)
            x->write<__nv_bfloat16>(random);
          else
            x->write<half>(random);
        }
        if (half_c)
          c.write<half>(random);
        else
          c.write<float>(random);
        for (const char* schedule : {"forward", "reverse", "seed:3", "lockstep"}) {
          CAPTURE(schedule);
          const auto kernel =
              std::string(schedule) == "lockstep" ? lockstep::product : plain::product;
          const Launched run = launched(schedule, [&] {
            return kernel(
                m, types,
                {a.memory, b.memory, c.memory, d.memory, a.by_columns, b.by_columns, c.by_columns});
          });
          for (const LaunchFinding& finding : run.report.findings) UNSCOPED_INFO(finding.message);
          REQUIRE(run.completed());
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
              double sum = c.value[i * n + j];
              for (int k = 0; k < 16; ++k) sum += a.value[i * 16 + k] * b.value[k * n + j];
              // All sums of small integers are exact.
              REQUIRE((half_d ? d.read<half>(i, j) : d.read<float>(i, j)) == sum);
            }
        }
      }
}

TEST_CASE("the order in which products are summed is the one chosen, and one that the bits show") {
  alignas(32) half a[256], b[256];
  alignas(32) float c[256] = {};
  std::mt19937 random(5);
  std::uniform_real_distribution<float> numbers(-1, 1);
  for (int i = 0; i < 256; ++i) {
    a[i] = half(numbers(random));
    b[i] = half(numbers(random));
  }
  const auto product = [&](std::uint64_t order) {
    alignas(32) float d[256];
    LaunchOptions options;
    options.mma_order = order;
    REQUIRE(launched(options, [&] {
              return plain::product(16, MatrixTypes::kHalfFloatFloat,
                                    {a, b, c, d, false, false, false});
            }).completed());
    return std::vector<float>(d, d + 256);
  };
  int others = 0;
  for (std::uint64_t order = 0; order <= 20; ++order) {
    CHECK(product(order) == product(order));
    others += product(order) != product(0);
  }
  CHECK(others > 15);
}

struct alignas(32) Memory {
  half inputs[32 * 32] = {};
  float out[32 * 32] = {};
};

TEST_CASE("a fragment whose elements were all set through x[] counts as set") {
  Memory memory;
  for (const char* schedule : {"forward", "lockstep"}) {
    const auto kernel = std::string(schedule) == "lockstep" ? lockstep::product_by_elements
                                                            : plain::product_by_elements;
    REQUIRE(launched(schedule, [&] { return kernel(memory.out); }).completed());
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 16; ++j)
        REQUIRE(memory.out[i * 16 + j] == static_cast<float>(16 * i * j) + 0.5f);
  }
}

TEST_CASE("a load does not see what other lanes stored before it unless the warp synchronised") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    Memory memory;
    REQUIRE(
        launched(schedule, [&] { return plain::write_then_load(true, memory.out); }).completed());
    for (int i = 0; i < 256; ++i) REQUIRE(memory.out[i] == static_cast<float>(i));
    REQUIRE(
        launched(schedule, [&] { return plain::write_then_load(false, memory.out); }).completed());
    int stale = 0;
    for (int i = 0; i < 256; ++i) stale += std::isnan(memory.out[i]);  // the poison
    CHECK(stale > 0);
  }
  Memory memory;
  REQUIRE(launched("lockstep", [&] {
            return lockstep::write_then_load(false, memory.out);
          }).completed());
  for (int i = 0; i < 256; ++i) REQUIRE(memory.out[i] == static_cast<float>(i));
}

TEST_CASE("what a lane stored of a fragment is not seen by others unless the warp synchronised") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    Memory memory;
    REQUIRE(
        launched(schedule, [&] { return plain::store_then_read(true, memory.out); }).completed());
    for (int i = 0; i < 256; ++i) REQUIRE(memory.out[i] == 3.0f);
    REQUIRE(
        launched(schedule, [&] { return plain::store_then_read(false, memory.out); }).completed());
    int stale = 0;
    for (int i = 0; i < 256; ++i) stale += std::isnan(memory.out[i]);
    CHECK(stale > 0);
  }
  Memory memory;
  REQUIRE(launched("lockstep", [&] {
            return lockstep::store_then_read(false, memory.out);
          }).completed());
  for (int i = 0; i < 256; ++i) REQUIRE(memory.out[i] == 3.0f);
}

TEST_CASE("a matrix at a multiple of 16 bytes alone is right on devices, and latent") {
  Memory memory{};
  constexpr auto kNothingElse = static_cast<BadMatrix>(99);
  const Launched run = launched(
      "forward", [&] { return plain::bad_matrix(kNothingElse, memory.inputs + 8, memory.out); });
  REQUIRE(run.completed());
  REQUIRE(run.report.notes.size() == 2);  // a place each
  for (const std::string& note : run.report.notes) {
    CHECK(note.starts_with("latent: kernel "));
    CHECK(contains(note, "load_matrix_sync a pointer at "));
    CHECK(contains(note, "not 32-byte aligned"));
  }
}

TEST_CASE("what CUDA does not define of matrices is a finding with its line") {
  struct Case {
    BadMatrix what;
    LaunchFindingKind kind;
    const char* part;
  };
  constexpr LaunchFindingKind kMisuse = LaunchFindingKind::kMatrixMisuse;
  const Case cases[] = {
      {BadMatrix::kIndexPastTheEnd, kMisuse, "uses element x[8] of a fragment that has 8 elements"},
      {BadMatrix::kNegativeIndex, kMisuse, "uses element x[-1] of a fragment that has 8 elements"},
      {BadMatrix::kStoreIntoOwnArray, kMisuse, "stores a fragment into an array of its own"},
      {BadMatrix::kLoadFromOwnArray, kMisuse, "loads a fragment from an array of its own"},
      {BadMatrix::kDifferentPointers, kMisuse, "pass store_matrix_sync different addresses"},
      {BadMatrix::kDifferentStrides, kMisuse, "pass load_matrix_sync different leading dimensions"},
      {BadMatrix::kDifferentLayouts, kMisuse, "pass store_matrix_sync different layouts"},
      {BadMatrix::kDifferentLines, kMisuse, "reach mma_sync by different calls"},
      {BadMatrix::kHalfStride, kMisuse, "a leading dimension of 20 elements of 2 bytes"},
      {BadMatrix::kFloatStride, kMisuse, "a leading dimension of 18 elements of 4 bytes"},
      {BadMatrix::kUnalignedLoad, kMisuse, "a pointer that is 8 bytes past a multiple of 32"},
      {BadMatrix::kUnalignedStore, kMisuse, "a pointer that is 4 bytes past a multiple of 32"},
      {BadMatrix::kUnsetAccumulator, kMisuse,
       "mma_sync a fragment (accumulator) that was never set"},
      {BadMatrix::kUnsetOperand, kMisuse, "mma_sync a fragment (matrix_a) that was never set"},
      {BadMatrix::kUnsetStored, kMisuse,
       "store_matrix_sync a fragment (accumulator) that was never"},
      {BadMatrix::kScaledBeforeSet, kMisuse,
       "mma_sync a fragment (accumulator) that was never set"},
      {BadMatrix::kReturnedLanes, LaunchFindingKind::kWarpDivergence,
       "reached by 30 of the 32 lanes"},
      {BadMatrix::kSomeLanesElsewhere, LaunchFindingKind::kWarpDivergence,
       "threads (0..15,0,0) at mma_sync with mask 0xFFFFFFFF"},
      {BadMatrix::kDifferentShapes, LaunchFindingKind::kWarpDivergence,
       "fragments of another type"}};
  std::vector<std::string> schedules = plain_schedules();
  schedules.push_back("lockstep");
  for (const Case& c : cases)
    for (const std::string& schedule : schedules) {
      CAPTURE(schedule, c.part);
      Memory memory;
      const auto kernel = schedule == "lockstep" ? lockstep::bad_matrix : plain::bad_matrix;
      const Launched run =
          launched(schedule, [&] { return kernel(c.what, memory.inputs, memory.out); });
      CHECK(run.error == cudaErrorLaunchFailure);
      CAPTURE(run.finding().message);
      CHECK(run.finding().kind == c.kind);
      CHECK(contains(run.finding().message, c.part));
      CHECK(contains(run.finding().message,
                     "matrix_misuse.cc:" + std::to_string(run.finding().line)));
    }
}

}  // namespace attn_diag::host

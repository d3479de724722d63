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
          for (const Finding& finding : run.report.findings) UNSCOPED_INFO(finding.message);
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

}  // namespace attn_diag::host

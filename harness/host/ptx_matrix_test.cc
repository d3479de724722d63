#include <bit>
#include <random>

#include "attn_diag_host/bfloat16.h"
#include "attn_diag_host/half.h"
#include "harness/host/mma_arithmetic.h"
#include "harness/host/test_kernels/ptx_kernels.h"
#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

constexpr int kLanes = 32;

std::vector<std::uint16_t> numbered_rows() {
  std::vector<std::uint16_t> rows(32 * 8);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint16_t>(1000 + i);
  return rows;
}

// What the PTX ISA says of ldmatrix: lane l gets elements 2 (l % 4) and the next of row l / 4; of the
// transpose, of column l / 4.
std::uint32_t expected_register(const std::vector<std::uint16_t>& rows, int matrix, int lane,
                                bool transposed) {
  const auto at = [&](int row, int column) {
    return std::uint32_t{rows[static_cast<std::size_t>(matrix * 64 + row * 8 + column)]};
  };
  const int r = lane / 4, c = lane % 4 * 2;
  return transposed ? at(c, r) | at(c + 1, r) << 16 : at(r, c) | at(r, c + 1) << 16;
}

}  // namespace

TEST_CASE("ldmatrix gives lanes the elements that the PTX ISA says, stmatrix takes them back") {
  const auto rows = numbered_rows();
  for (const std::string& schedule : plain_schedules())
    for (const int count : {1, 2, 4})
      for (const bool transposed : {false, true}) {
        CAPTURE(schedule, count, transposed);
        std::vector<std::uint32_t> registers(static_cast<std::size_t>(kLanes * count));
        REQUIRE(launched(schedule, [&] {
                  return plain::load_matrices(count, transposed, rows.data(), registers.data());
                }).completed());
        for (int lane = 0; lane < kLanes; ++lane)
          for (int m = 0; m < count; ++m)
            REQUIRE(registers[static_cast<std::size_t>(lane * count + m)] ==
                    expected_register(rows, m, lane, transposed));
        std::vector<std::uint16_t> stored(static_cast<std::size_t>(count * 64));
        REQUIRE(launched(schedule, [&] {
                  return plain::store_matrices(count, transposed, registers.data(), stored.data());
                }).completed());
        REQUIRE(std::equal(stored.begin(), stored.end(), rows.begin()));
      }
}

TEST_CASE("a missing __syncwarp before ldmatrix shows") {
  std::vector<std::uint32_t> out(kLanes);
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    const auto right = [&] {
      for (unsigned lane = 0; lane < kLanes; ++lane)
        if (out[lane] != lane) return false;
      return true;
    };
    REQUIRE(launched(schedule, [&] {
              return plain::write_then_load_matrix(true, out.data());
            }).completed());
    REQUIRE(right());
    REQUIRE(launched(schedule, [&] {
              return plain::write_then_load_matrix(false, out.data());
            }).completed());
    REQUIRE_FALSE(right());
  }
}

TEST_CASE("rows that ldmatrix and stmatrix cannot use are findings") {
  const struct {
    BadRow what;
    LaunchFindingKind kind;
    const char* message;
  } cases[] = {
      {BadRow::kGlobal, LaunchFindingKind::kSharedMemoryMisuse,
       "passes ldmatrix a row that is not shared memory"},
      {BadRow::kMisaligned, LaunchFindingKind::kMatrixMisuse,
       "passes stmatrix a row that is 8 bytes past a multiple of 16"},
      {BadRow::kReturnedLanes, LaunchFindingKind::kWarpDivergence,
       "is reached by 4 of the 32 lanes"},
      {BadRow::kDifferentKinds, LaunchFindingKind::kWarpDivergence,
       "meets lanes of its warp in another operation"},
  };
  std::vector<std::uint16_t> global(256);
  for (const auto& [what, kind, message] : cases) {
    const Launched run =
        launched("forward", [&, what = what] { return plain::bad_row(what, global.data()); });
    CAPTURE(message, run.finding().message);
    CHECK(run.finding().kind == kind);
    CHECK(contains(run.finding().message, message));
  }
}

TEST_CASE("mma.sync multiplies what PTX's registers hold, rounded as wmma is") {
  struct Case {
    MmaKind kind;
    unsigned depth;
  };
  std::vector<Case> cases;
  for (const bool half_c : {false, true})
    for (const bool half_d : {false, true}) {
      cases.push_back({{MmaShape::kM16N8K16, MmaInput::kF16, half_c, half_d}, 16});
      cases.push_back({{MmaShape::kM16N8K8, MmaInput::kF16, half_c, half_d}, 8});
    }
  cases.push_back({{MmaShape::kM16N8K16, MmaInput::kBf16, false, false}, 16});
  cases.push_back({{MmaShape::kM16N8K8, MmaInput::kBf16, false, false}, 8});
  cases.push_back({{MmaShape::kM16N8K8, MmaInput::kTf32, false, false}, 8});
  cases.push_back({{MmaShape::kM16N8K4, MmaInput::kTf32, false, false}, 4});
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const Case& c : cases) {
    CAPTURE(static_cast<int>(c.kind.shape), static_cast<int>(c.kind.input), c.kind.half_c,
            c.kind.half_d);
    const auto bits = [&](MmaInput input, float value) -> std::uint32_t {
      switch (input) {
        case MmaInput::kF16:
          return half_bits(value);
        case MmaInput::kBf16:
          return std::bit_cast<std::uint32_t>(value) >> 16;
        case MmaInput::kTf32:
          break;
      }
      return std::bit_cast<std::uint32_t>(value);  // with low bits, which count for nothing
    };
    const auto value = [&](MmaInput input, std::uint32_t x) {
      switch (input) {
        case MmaInput::kF16:
          return half_value(static_cast<std::uint16_t>(x));
        case MmaInput::kBf16:
          return std::bit_cast<float>(x << 16);
        case MmaInput::kTf32:
          break;
      }
      return std::bit_cast<float>(x & 0xFFFFE000u);
    };
    std::vector<std::uint32_t> a(16 * c.depth), b(c.depth * 8), acc(16 * 8), d(16 * 8);
    std::vector<float> fa(16 * kMmaDepth), fb(kMmaDepth * 8), fc(16 * 8);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = bits(c.kind.input, normal(random));
      fa[i / c.depth * kMmaDepth + i % c.depth] = value(c.kind.input, a[i]);
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
      b[i] = bits(c.kind.input, normal(random));
      fb[i] = value(c.kind.input, b[i]);
    }
    for (std::size_t i = 0; i < acc.size(); ++i) {
      const float x = normal(random);
      acc[i] = c.kind.half_c ? half_bits(x) : std::bit_cast<std::uint32_t>(x);
      fc[i] = c.kind.half_c ? half_value(half_bits(x)) : x;
    }
    for (const std::uint64_t order : {0, 5}) {
      std::vector<float> fd(16 * 8);
      multiply_accumulate(fa.data(), fb.data(), fc.data(), fd.data(), 16, 8, mma_order(order));
      LaunchOptions options;
      options.mma_order = order;
      REQUIRE(
          launched(options, [&] {
            return plain::multiply_by_registers(c.kind, {a.data(), b.data(), acc.data(), d.data()});
          }).completed());
      for (std::size_t i = 0; i < d.size(); ++i)
        REQUIRE(d[i] == (c.kind.half_d ? half_bits(fd[i]) : std::bit_cast<std::uint32_t>(fd[i])));
    }
  }
}

}  // namespace attn_diag::host

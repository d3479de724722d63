#include "common/accumulator_places.h"

#include <array>

#include "common/element.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

constexpr int kStride = stride_of_16_bit(2 * kFragment);
using Tile = std::array<__half, kFragment * kStride>;

// What a warp stores of two neighbouring fragments whose elements are their places, and 256 more.
// place(lane, i): where element i of a lane is.
template <class F>
Tile stored(F place) {
  Tile tile;
  tile.fill(__half(-1.0f));
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned places[kFragmentElements];
    __half2 pairs[2][kFragmentElements / 2];
    for (unsigned i = 0; i < kFragmentElements; ++i) places[i] = place(lane, i);
    for (unsigned i = 0; i < kFragmentElements; i += 2)
      for (unsigned n = 0; n < 2; ++n)
        pairs[n][i / 2] = PairOf<__half>::from_floats(static_cast<float>(places[i] + 256 * n),
                                                      static_cast<float>(places[i + 1] + 256 * n));
    AccumulatorPlaces(places).store_pairs(tile.data(), kStride, pairs);
  }
  return tile;
}

int count_wrong(const Tile& tile) {
  int wrong = 0;
  for (int row = 0; row < kFragment; ++row)
    for (int column = 0; column < kStride; ++column) {
      const int expected = column < 2 * kFragment
                               ? row * kFragment + column % kFragment + column / kFragment * 256
                               : -1;  // padding
      wrong += to_float(tile[static_cast<std::size_t>(row * kStride + column)]) !=
               static_cast<float>(expected);
    }
  return wrong;
}

TEST_CASE("fragments are stored in place whatever elements a lane holds") {
  // As on sm_80 to sm_90: pairs of neighbours.
  CHECK(count_wrong(stored([](unsigned lane, unsigned i) {
          return (lane / 4 + i / 2 % 2 * 8) * 16 + lane % 4 * 2 + i % 2 + i / 4 * 8;
        })) == 0);
  // Columns instead of rows: no neighbours.
  CHECK(count_wrong(stored(
            [](unsigned lane, unsigned i) { return (lane % 2 * 8 + i) * 16 + lane / 2; })) == 0);
  // Neighbours, but from an odd column on: they must not be stored as one word.
  CHECK(count_wrong(stored([](unsigned lane, unsigned i) {
          return (lane * 8 + i + 1) / 16 % 16 * 16 + (lane * 8 + i + 1) % 16;
        })) == 0);
}

}  // namespace
}  // namespace attn_diag

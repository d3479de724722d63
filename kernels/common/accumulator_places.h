// Which elements of an accumulator fragment a lane holds. CUDA does not specify it, so it is read off
// the hardware: a tile whose elements are their own places is loaded as a fragment. That fragments of
// one type hold their elements alike is what CUDA does promise.
#pragma once

#include <cuda_runtime.h>
#include <mma.h>

#include "attn_diag/kernels/tap.h"
#include "common/row_times_tile.h"
#include "common/wmma_tiles.h"

namespace attn_diag {

inline constexpr int kFragmentElements = Accumulator::num_elements;  // that one lane holds
inline constexpr int kPlacesStride = stride_of_32_bit(kFragment);

class AccumulatorPlaces {
 public:
  // For all lanes of a warp together. sScratch: (16, 16) of stride kPlacesStride, the warp's own,
  // free again afterwards.
  ATTN_DIAG_DEVICE explicit AccumulatorPlaces(float* sScratch) {
    const int lane = static_cast<int>(threadIdx.x % 32u);
    for (int place = lane; place < kFragment * kFragment; place += 32)
      sScratch[place / kFragment * kPlacesStride + place % kFragment] = static_cast<float>(place);
    __syncwarp();
    Accumulator rPlaces;
    nvcuda::wmma::load_matrix_sync(rPlaces, sScratch, kPlacesStride, nvcuda::wmma::mem_row_major);
    __syncwarp();
    ATTN_DIAG_UNROLL
    for (int i = 0; i < kFragmentElements; ++i) x_place[i] = static_cast<unsigned>(rPlaces.x[i]);
    x_paired = __all_sync(0xffffffffu, has_pairs()) != 0;
  }

  // For a lane whose elements are at these places (kFragment * row + column), in a warp of such lanes.
  ATTN_DIAG_DEVICE explicit AccumulatorPlaces(const unsigned (&places)[kFragmentElements]) {
    for (int i = 0; i < kFragmentElements; ++i) x_place[i] = places[i];
    x_paired = has_pairs();
  }

  ATTN_DIAG_DEVICE int row(int i) const { return static_cast<int>(x_place[i] / kFragment); }
  ATTN_DIAG_DEVICE int column(int i) const { return static_cast<int>(x_place[i] % kFragment); }
  // Stores kCount neighbouring fragments, each rounded to 16 bits in pairs (x[0], x[1]), (x[2], x[3]),
  // ..., as the (16, 16 * kCount) part of a tile that begins at sTile. Two elements at once where they
  // are neighbours in every lane, as they are on all devices so far.
  template <class Element, class Pair, int kCount>
  ATTN_DIAG_DEVICE void store_pairs(Element* sTile, int stride,
                                    const Pair (&pairs)[kCount][kFragmentElements / 2]) const {
    if (x_paired) {
      ATTN_DIAG_UNROLL
      for (int n = 0; n < kCount; ++n) {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < kFragmentElements; i += 2)
          *reinterpret_cast<Pair*>(sTile + row(i) * stride + column(i) + n * kFragment) =
              pairs[n][i / 2];
      }
    } else {
      ATTN_DIAG_UNROLL
      for (int n = 0; n < kCount; ++n) {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < kFragmentElements; i += 2) {
          sTile[row(i) * stride + column(i) + n * kFragment] = pairs[n][i / 2].x;
          sTile[row(i + 1) * stride + column(i + 1) + n * kFragment] = pairs[n][i / 2].y;
        }
      }
    }
  }

 private:
  ATTN_DIAG_DEVICE bool has_pairs() const {
    bool paired = true;
    ATTN_DIAG_UNROLL
    for (int i = 1; i < kFragmentElements; i += 2)
      paired &= x_place[i] == x_place[i - 1] + 1 && column(i) % 2 == 1;
    return paired;
  }

  unsigned x_place[kFragmentElements];  // kFragment * row + column
  // In every lane x[i] and x[i + 1], for even i, are neighbours, the first in an even column.
  bool x_paired;
};

}  // namespace attn_diag

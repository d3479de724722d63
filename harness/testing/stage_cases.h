// Problems that bracket a tile of 16, for tests of every stage of every kernel.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/kernels/problem.h"

namespace attn_diag::testing {

inline constexpr std::int32_t kTile = 16;
// 1, N-1, N, N+1, 2N-1, 3N+5 of a tile of N.
inline constexpr std::array<std::int32_t, 6> kLengths = {1,         kTile - 1,     kTile,
                                                         kTile + 1, 2 * kTile - 1, 3 * kTile + 5};

// What a kernel takes.
struct Choices {
  std::vector<DType> dtypes;
  std::vector<std::int32_t> dims;
};
inline Choices choices_of(const std::string& kernel) {
  // On tensor cores fragments have 16 columns, and rows are copied 8 elements at a time: dims at and
  // off those.
  if (kernel.rfind("fused_wmma", 0) == 0)
    return {{DType::kFp16, DType::kBf16}, {64, 3, 40, 16, 80, 128, 96, 33, 48}};
  // Lanes own 4 columns: dims below, at and off that, and up to the largest.
  return {{DType::kFp16, DType::kBf16, DType::kFp32}, {64, 3, 40, 1, 80, 128, 256}};
}

struct Heads {
  std::int32_t batch, heads, kv_heads;
};
inline constexpr std::array<Heads, 4> kHeads = {{{1, 1, 1}, {2, 2, 2}, {1, 4, 2}, {1, 3, 1}}};

inline std::vector<Mask> masks() {
  std::vector<Mask> all(4);
  all[1].kind = all[2].kind = MaskKind::kCausal;
  all[2].alignment = CausalAlignment::kBottomRight;  // Sq > Sk: the first queries see no key
  all[3].kind = MaskKind::kWindow;
  all[3].window_left = kTile + 3;
  all[3].window_right = 2;
  return all;
}

// Every dtype x mask x pair of lengths; dims, head counts, layouts and splits take turns.
template <class F>
void for_each_case(const Choices& choices, bool splits, F&& f) {
  const std::vector<std::int32_t>& dims = choices.dims;
  std::size_t turn = 0;
  for (const DType dtype : choices.dtypes) {
    for (const Mask& mask : masks()) {
      for (const std::int32_t seqlen_q : kLengths) {
        for (const std::int32_t seqlen_k : kLengths) {
          const Heads heads = kHeads[turn % kHeads.size()];
          Problem p;
          p.batch = heads.batch;
          p.heads = heads.heads;
          p.kv_heads = heads.kv_heads;
          p.seqlen_q = seqlen_q;
          p.seqlen_k = seqlen_k;
          p.head_dim = dims[turn % dims.size()];
          p.head_dim_v = turn % 5 == 0 ? dims[(turn + 3) % dims.size()] : p.head_dim;
          p.dtype = dtype;
          p.layout = turn % 3 == 0 ? Layout::kBSHD : Layout::kBHSD;
          p.mask = mask;
          p.softmax_scale = 1.0f / std::sqrt(static_cast<float>(p.head_dim));
          // 0: the kernel's choice; 6 is more than there are tiles, so that some splits are empty.
          constexpr std::array<int, 5> kSplits = {0, 1, 2, 3, 6};
          f(p, splits ? kSplits[turn % kSplits.size()] : 0);
          ++turn;
        }
      }
    }
  }
}

}  // namespace attn_diag::testing

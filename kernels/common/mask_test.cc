#include "common/mask.h"

#include <algorithm>
#include <cmath>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

Problem make_problem(int seqlen_q, int seqlen_k, Mask mask) {
  Problem problem;
  problem.seqlen_q = seqlen_q;
  problem.seqlen_k = seqlen_k;
  problem.mask = mask;
  return problem;
}

// The definition in problem.h, one cell at a time.
bool sees(const Problem& p, std::int64_t query, std::int64_t key) {
  const std::int64_t bottom_right = p.seqlen_k - p.seqlen_q;
  const std::int64_t offset = p.mask.alignment == CausalAlignment::kBottomRight ? bottom_right : 0;
  switch (p.mask.kind) {
    case MaskKind::kNone:
      return true;
    case MaskKind::kCausal:
      return key <= query + offset;
    case MaskKind::kWindow:
      return query + bottom_right - p.mask.window_left <= key &&
             key <= query + bottom_right + p.mask.window_right;
  }
  return false;
}

const Mask kMasks[] = {
    {},
    {MaskKind::kCausal, CausalAlignment::kTopLeft, 0, 0},
    {MaskKind::kCausal, CausalAlignment::kBottomRight, 0, 0},
    {MaskKind::kWindow, CausalAlignment::kTopLeft, 0, 0},
    {MaskKind::kWindow, CausalAlignment::kTopLeft, 2, 1},
    {MaskKind::kWindow, CausalAlignment::kTopLeft, 0, 5},
    {MaskKind::kWindow, CausalAlignment::kTopLeft, 1000000000, 2147483647},
};

template <class F>
void for_each_problem(F&& f) {
  for (const Mask& mask : kMasks)
    for (int seqlen_q = 1; seqlen_q <= 9; ++seqlen_q)
      for (int seqlen_k = 1; seqlen_k <= 9; ++seqlen_k) f(make_problem(seqlen_q, seqlen_k, mask));
}

TEST_CASE("a key is in the visible range exactly if the mask's definition says so") {
  for_each_problem([](const Problem& p) {
    const BandMask mask(p);
    for (int query = 0; query < p.seqlen_q; ++query)
      for (int key = 0; key < p.seqlen_k; ++key) {
        INFO("mask " << static_cast<int>(p.mask.kind) << ", " << p.seqlen_q << "x" << p.seqlen_k
                     << ", query " << query << ", key " << key);
        REQUIRE((mask.visible(query).apply(1.5f, key) == 1.5f) == sees(p, query, key));
      }
  });
}

TEST_CASE("keys that do not exist are masked") {
  for_each_problem([](const Problem& p) {
    const BandMask mask(p);
    for (int query = 0; query < p.seqlen_q; ++query)
      for (int key = p.seqlen_k; key < p.seqlen_k + 5; ++key)
        REQUIRE(mask.visible(query).apply(1.5f, key) == -INFINITY);
  });
}

TEST_CASE("the tiles visited are those from the first to the last with a visible cell") {
  for_each_problem([](const Problem& p) {
    const BandMask mask(p);
    for (int block_m : {1, 2, 3, 16})
      for (int block_n : {1, 2, 3, 16})
        for (int begin = 0; begin < p.seqlen_q; begin += block_m) {
          const int end = std::min(begin + block_m, p.seqlen_q);
          int first = -1, last = -1;
          for (int key = 0; key < p.seqlen_k; ++key)
            for (int query = begin; query < end; ++query)
              if (sees(p, query, key)) {
                if (first < 0) first = key / block_n;
                last = key / block_n;
              }
          const TileRange tiles = mask.tiles(begin, end, block_n);
          INFO("mask " << static_cast<int>(p.mask.kind) << ", " << p.seqlen_q << "x" << p.seqlen_k
                       << ", tile " << block_m << "x" << block_n << ", query " << begin);
          if (first < 0) {
            REQUIRE(tiles.begin >= tiles.end);
          } else {
            REQUIRE(tiles.begin == first);
            REQUIRE(tiles.end == last + 1);
          }
        }
  });
}

TEST_CASE("the splits share out all tiles, each once and in order") {
  for (int num_tiles = 1; num_tiles <= 20; ++num_tiles)
    for (int num_splits = 1; num_splits <= 25; ++num_splits) {
      Problem p = make_problem(1, num_tiles * 2 - 1, {});
      Geometry g;
      g.tile = {2, 2};
      g.num_splits = num_splits;
      g.tiles_per_split = ceil_div(num_tiles, num_splits);
      int next = 0;
      for (int split = 0; split < num_splits; ++split) {
        const TileRange tiles = tiles_of_split(p, g, split);
        INFO(num_tiles << " tiles, " << num_splits << " splits, split " << split);
        REQUIRE(tiles.begin <= tiles.end);
        REQUIRE(tiles.begin == next);
        next = tiles.end;
      }
      REQUIRE(next == num_tiles);
    }
}

TEST_CASE("an intersection holds what is in both ranges") {
  const TileRange both = intersect({2, 9}, {4, 12});
  CHECK(both.begin == 4);
  CHECK(both.end == 9);
  const TileRange none = intersect({2, 4}, {6, 8});
  CHECK(none.begin >= none.end);
}

}  // namespace
}  // namespace attn_diag

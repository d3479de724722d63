// Stage isolation: every stage of every kernel, on shapes that bracket the tile, in a prefix run (all
// stages before it as the kernel computes them) and isolated (fed the reference's inputs).
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/catch2.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/run.h"
#include "harness/catch_for_tests.h"

namespace attn_diag {
namespace {

constexpr std::int32_t kTile = 16;
// 1, N-1, N, N+1, 2N-1, 3N+5 of a tile of N.
constexpr std::array<std::int32_t, 6> kLengths = {1,         kTile - 1,     kTile,
                                                  kTile + 1, 2 * kTile - 1, 3 * kTile + 5};
constexpr std::array<DType, 3> kDTypes = {DType::kFp16, DType::kBf16, DType::kFp32};
// Lanes own 4 columns: dims below, at and off that, and up to the largest.
constexpr std::array<std::int32_t, 7> kDims = {64, 3, 40, 1, 80, 128, 256};

struct Heads {
  std::int32_t batch, heads, kv_heads;
};
constexpr std::array<Heads, 4> kHeads = {{{1, 1, 1}, {2, 2, 2}, {1, 4, 2}, {1, 3, 1}}};

std::vector<Mask> masks() {
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
void for_each_case(bool splits, F&& f) {
  std::size_t turn = 0;
  for (const DType dtype : kDTypes) {
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
          p.head_dim = kDims[turn % kDims.size()];
          p.head_dim_v = turn % 5 == 0 ? kDims[(turn + 3) % kDims.size()] : p.head_dim;
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

void check_stage(const std::string& kernel_name, Stage stage) {
  const Kernel kernel = Kernel::load(kernel_name, "host");
  RunOptions options;
  options.gate = static_cast<Gate>(stage);
  options.tile = {kTile, kTile};
  int cases = 0;
  for_each_case(kernel.info().takes_num_splits, [&](const Problem& problem, int num_splits) {
    options.num_splits = num_splits;
    const InputData inputs = make_inputs(problem, "randn", static_cast<std::uint64_t>(cases), 1.0);
    for (const bool isolate : {false, true}) {
      options.isolate = isolate;
      CHECK_THAT(run_kernel(kernel, problem, inputs, options), matches_reference(stage));
    }
    ++cases;
  });
  CHECK(cases == 3 * 4 * 36);
}

}  // namespace

TEST_CASE("stage qk of fa1 on backend host is right, prefix and isolated") {
  check_stage("fa1", Stage::kQk);
}
TEST_CASE("stage softmax of fa1 on backend host is right, prefix and isolated") {
  check_stage("fa1", Stage::kSoftmax);
}
TEST_CASE("stage pv of fa1 on backend host is right, prefix and isolated") {
  check_stage("fa1", Stage::kPv);
}
TEST_CASE("stage reduce of fa1 on backend host is right, prefix and isolated") {
  check_stage("fa1", Stage::kReduce);
}
TEST_CASE("stage qk of split_k on backend host is right, prefix and isolated") {
  check_stage("split_k", Stage::kQk);
}
TEST_CASE("stage softmax of split_k on backend host is right, prefix and isolated") {
  check_stage("split_k", Stage::kSoftmax);
}
TEST_CASE("stage pv of split_k on backend host is right, prefix and isolated") {
  check_stage("split_k", Stage::kPv);
}
TEST_CASE("stage reduce of split_k on backend host is right, prefix and isolated") {
  check_stage("split_k", Stage::kReduce);
}

TEST_CASE("every compiled tile of every kernel on backend host is right in every stage") {
  for (const std::string kernel_name : {"fa1", "split_k"}) {
    const Kernel kernel = Kernel::load(kernel_name, "host");
    for (std::int32_t i = 0; i < kernel.info().num_tiles; ++i) {
      RunOptions options;
      options.tile = kernel.info().tiles[i];
      Problem p;
      p.heads = p.kv_heads = 2;
      p.seqlen_q = 2 * options.tile.block_m + 1;
      p.seqlen_k = 3 * options.tile.block_n + 1;
      p.head_dim = p.head_dim_v = 24;
      p.mask.kind = MaskKind::kCausal;
      p.mask.alignment = CausalAlignment::kBottomRight;
      p.softmax_scale = 0.2f;
      const Capture capture = run_kernel(kernel, p, make_inputs(p, "rising", 0, 1.0), options);
      CHECK_THAT(capture, matches_reference());
    }
  }
}

}  // namespace attn_diag

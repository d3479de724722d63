// Stage isolation: every stage of every kernel, on shapes that bracket the tile, in a prefix run (all
// stages before it as the kernel computes them) and isolated (fed the reference's inputs).
#include <cstdint>
#include <string>

#include "attn_diag/harness/catch2.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/run.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/shipped_kernels.h"
#include "harness/testing/stage_cases.h"

namespace attn_diag {
namespace {

using testing::Choices;
using testing::choices_of;
using testing::for_each_case;
using testing::kTile;

void check_stage(const std::string& kernel_name, Stage stage) {
  const Kernel kernel = Kernel::load(kernel_name, "host");
  RunOptions options;
  options.gate = static_cast<Gate>(stage);
  options.tile = {kTile, kTile};
  int cases = 0;
  const Choices choices = choices_of(kernel_name);
  for_each_case(
      choices, kernel.info().takes_num_splits, [&](const Problem& problem, int num_splits) {
        options.num_splits = num_splits;
        const InputData inputs =
            make_inputs(problem, "randn", static_cast<std::uint64_t>(cases), 1.0);
        for (const bool isolate : {false, true}) {
          options.isolate = isolate;
          CHECK_THAT(run_kernel({kernel, problem, inputs, options}), matches_reference(stage));
        }
        ++cases;
      });
  CHECK(cases == static_cast<int>(choices.dtypes.size()) * 4 * 36);
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
TEST_CASE("stage qk of fused_wmma_simple on backend host is right, prefix and isolated") {
  check_stage("fused_wmma_simple", Stage::kQk);
}
TEST_CASE("stage softmax of fused_wmma_simple on backend host is right, prefix and isolated") {
  check_stage("fused_wmma_simple", Stage::kSoftmax);
}
TEST_CASE("stage pv of fused_wmma_simple on backend host is right, prefix and isolated") {
  check_stage("fused_wmma_simple", Stage::kPv);
}
TEST_CASE("stage reduce of fused_wmma_simple on backend host is right, prefix and isolated") {
  check_stage("fused_wmma_simple", Stage::kReduce);
}
TEST_CASE("stage qk of fused_wmma on backend host is right, prefix and isolated") {
  check_stage("fused_wmma", Stage::kQk);
}
TEST_CASE("stage softmax of fused_wmma on backend host is right, prefix and isolated") {
  check_stage("fused_wmma", Stage::kSoftmax);
}
TEST_CASE("stage pv of fused_wmma on backend host is right, prefix and isolated") {
  check_stage("fused_wmma", Stage::kPv);
}
TEST_CASE("stage reduce of fused_wmma on backend host is right, prefix and isolated") {
  check_stage("fused_wmma", Stage::kReduce);
}

TEST_CASE("every compiled tile of every kernel on backend host is right in every stage") {
  for (const std::string& kernel_name : testing::shipped_kernels()) {
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
      const Capture capture = run_kernel({kernel, p, make_inputs(p, "rising", 0, 1.0), options});
      CHECK_THAT(capture, matches_reference());
    }
  }
}

}  // namespace attn_diag

// Every stage of every kernel on a GPU: against the reference, against the hand-computed cases, against
// the same kernel on the host executor, and with taps against without.
#include <cstdint>
#include <set>
#include <string>

#include "attn_diag/harness/catch2.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/harness/run.h"
#include "harness/backends/cuda/testing/on_gpu.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/hand_case_check.h"
#include "harness/testing/stage_cases.h"

namespace attn_diag {
namespace {

using testing::choices_of;
using testing::for_each_case;
using testing::gpu_is_here;
using testing::kernels_for_both;
using testing::kTile;

bool supports(const Kernel& kernel, const Problem& problem, const RunOptions& options) {
  try {
    plan_geometry(kernel, problem, options);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The kernel's tile of that many rows and columns, or its first.
TileShape tile_of(const Kernel& kernel, std::int32_t size) {
  for (std::int32_t i = 0; i < kernel.info().num_tiles; ++i)
    if (kernel.info().tiles[i].block_m == size && kernel.info().tiles[i].block_n == size)
      return kernel.info().tiles[i];
  return kernel.info().tiles[0];
}

// Calls f(kernel name, problem, options, inputs) for every kSparse-th case that the kernel supports.
template <class F>
void for_each_supported(std::size_t first, F&& f) {
  constexpr std::size_t kSparse = 11;  // has no factor in common with the lists that take turns
  REQUIRE_FALSE(kernels_for_both().empty());
  for (const std::string& name : kernels_for_both()) {
    const Kernel kernel = Kernel::load(name, "cuda");
    RunOptions options;
    options.tile = tile_of(kernel, kTile);
    std::size_t turn = first;
    int cases = 0;
    for_each_case(choices_of(name), kernel.info().takes_num_splits,
                  [&](const Problem& problem, int num_splits) {
                    options.num_splits = num_splits;
                    if (turn++ % kSparse != 0 || !supports(kernel, problem, options)) return;
                    INFO(name);
                    f(kernel, problem, options, make_inputs(problem, "randn", turn, 1.0));
                    ++cases;
                  });
    INFO(name);
    CHECK(cases >= 5);
  }
}

void check_stage(Stage stage) {
  if (!gpu_is_here()) return;
  for_each_supported(
      static_cast<std::size_t>(stage),
      [&](const Kernel& kernel, const Problem& p, RunOptions options, const InputData& inputs) {
        options.gate = static_cast<Gate>(stage);
        for (const bool isolate : {false, true}) {
          options.isolate = isolate;
          CHECK_THAT(run_kernel({kernel, p, inputs, options}), matches_reference(stage));
        }
      });
}

}  // namespace

TEST_CASE("stage qk of every kernel on backend cuda is right, prefix and isolated", "[cuda]") {
  check_stage(Stage::kQk);
}
TEST_CASE("stage softmax of every kernel on backend cuda is right, prefix and isolated", "[cuda]") {
  check_stage(Stage::kSoftmax);
}
TEST_CASE("stage pv of every kernel on backend cuda is right, prefix and isolated", "[cuda]") {
  check_stage(Stage::kPv);
}
TEST_CASE("stage reduce of every kernel on backend cuda is right, prefix and isolated", "[cuda]") {
  check_stage(Stage::kReduce);
}

TEST_CASE("every stage on backend cuda is what backend host gives, within the bounds", "[cuda]") {
  if (!gpu_is_here()) return;
  for_each_supported(5, [](const Kernel& kernel, const Problem& p, const RunOptions& options,
                           const InputData& inputs) {
    const Capture gpu = run_kernel({kernel, p, inputs, options});
    const Capture host = run_kernel({Kernel::load(kernel.spec(), "host"), p, inputs, options});
    const Comparison comparison = compare_captures(gpu, host, {});
    CHECK(comparison.tensors.size() >= 10);
    for (const TensorComparison& t : comparison.tensors) {
      INFO(name(t.tensor) << ": " << t.max_err_over_bound << " of the bound");
      CHECK(t.agrees());
    }
  });
}

TEST_CASE("taps on backend cuda do not change a bit of o and lse", "[cuda]") {
  if (!gpu_is_here()) return;
  for_each_supported(
      7, [](const Kernel& kernel, const Problem& p, RunOptions options, const InputData& inputs) {
        const Capture tapped = run_kernel({kernel, p, inputs, options});
        options.taps = false;
        const Capture production = run_kernel({kernel, p, inputs, options});
        CHECK(tapped[Tensor::kO].bytes == production[Tensor::kO].bytes);
        CHECK(tapped[Tensor::kLse].bytes == production[Tensor::kLse].bytes);
        CHECK_FALSE(tapped.repetition.moved());
        CHECK(production.repetition.runs == 2);
      });
}

TEST_CASE("every compiled tile of every kernel on backend cuda is right in every stage", "[cuda]") {
  if (!gpu_is_here()) return;
  for (const std::string& name : kernels_for_both()) {
    const Kernel kernel = Kernel::load(name, "cuda");
    for (std::int32_t i = 0; i < kernel.info().num_tiles; ++i) {
      RunOptions options;
      options.tile = kernel.info().tiles[i];
      Problem p;
      p.heads = p.kv_heads = 2;
      p.seqlen_q = 2 * options.tile.block_m + 1;
      p.seqlen_k = 3 * options.tile.block_n + 1;
      p.head_dim = p.head_dim_v = 64;
      p.mask.kind = MaskKind::kCausal;
      p.mask.alignment = CausalAlignment::kBottomRight;
      p.softmax_scale = 0.125f;
      INFO(name << ", tile " << options.tile.block_m << "x" << options.tile.block_n);
      CHECK_THAT(run_kernel({kernel, p, make_inputs(p, "rising", 0, 1.0), options}),
                 matches_reference());
    }
  }
}

TEST_CASE("fa1 and split_k on backend cuda compute the hand-computed cases", "[cuda]") {
  if (!gpu_is_here()) return;
  CHECK(testing::check_hand_cases("fa1", "cuda").size() >= 12);
  CHECK(testing::check_hand_cases("split_k", "cuda").count("3x3_two_splits") == 1);
}

TEST_CASE("a run on backend cuda says where it ran", "[cuda]") {
  if (!gpu_is_here()) return;
  Problem p;
  p.head_dim = p.head_dim_v = 64;
  p.seqlen_q = p.seqlen_k = 16;
  p.softmax_scale = 0.125f;
  const Capture c =
      run_kernel({Kernel::load("fa1", "cuda"), p, make_inputs(p, "randn", 0, 1.0), RunOptions{}});
  CHECK(c.provenance.backend == "cuda");
  CHECK(c.provenance.device == text(gpu_state().gpus.front()));
  CHECK(c.provenance.driver == gpu_state().driver());
  CHECK(c.provenance.schedule.empty());
  REQUIRE_FALSE(c.notes.empty());
  CHECK_THAT(c.notes.front(), contains("Backend cuda shows what this GPU did in two runs"));
}

}  // namespace attn_diag

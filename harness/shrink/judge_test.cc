// Making a case smaller by a judge of cases in place of processes.
#include "harness/shrink/judge.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "attn_diag/harness/check_problem.h"
#include "harness/shrink/shrink.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::shrink {
namespace {

Experiment given_case() {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seqlen_q = problem.seqlen_k = 40;
  problem.head_dim = problem.head_dim_v = 64;
  problem.softmax_scale = default_softmax_scale(64);
  return {Kernel::load("fa1", "host"), problem, make_inputs(problem, "randn", 0, 1)};
}

Failure failure_of_kind(FailureKind kind) {
  Failure failure;
  failure.kind = kind;
  return failure;
}

TEST_CASE("what a judge says is all that counts, and a case is judged once") {
  std::vector<std::array<int, 6>> asked;
  ShrinkOptions options;
  options.keep_values = true;
  options.hold = {"seqlen_q"};
  options.judge = [&](const TriedCase& one) -> Told {
    const Problem& p = one.problem;
    asked.push_back(
        {p.heads, p.seqlen_q, p.seqlen_k, p.head_dim, one.tile.block_m, one.tile.block_n});
    if (p.seqlen_k < 7)
      return {Said::kFails, failure_of_kind(FailureKind::kRefused)};  // of another kind
    return p.seqlen_k >= 17 ? Told{Said::kFails, failure_of_kind(FailureKind::kWrong)} : Told{};
  };
  const ShrinkResult result = shrink(given_case(), options);
  CHECK(result.fails);
  CHECK(result.smallest.problem.heads == 1);
  CHECK(result.smallest.problem.seqlen_q == 40);
  CHECK(result.smallest.problem.seqlen_k == 17);
  CHECK_FALSE(result.trace);
  const auto keys = std::find_if(result.sizes.begin(), result.sizes.end(),
                                 [](const SizeReport& s) { return s.name == "seqlen_k"; });
  REQUIRE(keys != result.sizes.end());
  CHECK(keys->passes == 16);
  CHECK(result.tried == std::ssize(asked));
  std::sort(asked.begin(), asked.end());
  CHECK(std::unique(asked.begin(), asked.end()) == asked.end());
}

TEST_CASE("a size that the case does not have cannot be held") {
  ShrinkOptions options;
  options.judge = [](const TriedCase&) -> Told {
    return {Said::kFails, failure_of_kind(FailureKind::kWrong)};
  };
  options.hold = {"seqlen"};
  CHECK_THROWS_WITH(shrink(given_case(), options), contains("'seqlen' is no size of this case"));
}

TEST_CASE("a judge that runs the kernel finds nothing in one that is right") {
  const Experiment given = given_case();
  const Judge judge = judge_by_running(given, 2);
  CHECK(judge({given.problem, {0, 0}, 0, std::make_shared<const InputData>(given.inputs)}).said ==
        Said::kPasses);
}

}  // namespace
}  // namespace attn_diag::shrink

#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include <attn_diag/harness/catch2.h>
#include <attn_diag/harness/kernel.h>
#include <attn_diag/harness/run.h>

#include <cmath>

using attn_diag::matches_reference;
using attn_diag::Stage;

TEST_CASE("a user's kernel matches the reference in every stage") {
  attn_diag::Problem problem;
  problem.batch = 1;
  problem.heads = problem.kv_heads = 2;
  problem.seqlen_q = 65;
  problem.seqlen_k = 70;
  problem.head_dim = problem.head_dim_v = 32;
  problem.dtype = attn_diag::DType::kFp32;
  problem.softmax_scale = 1.0f / std::sqrt(32.0f);

  const auto kernel = attn_diag::Kernel::load(ROWWISE_LIBRARY, "host");
  const auto inputs = attn_diag::make_inputs(problem, "randn", 1, 1.0);
  const auto capture = attn_diag::run_kernel({kernel, problem, inputs, {}});

  for (const Stage stage : {Stage::kQk, Stage::kSoftmax, Stage::kPv, Stage::kReduce})
    REQUIRE_THAT(capture, matches_reference(stage));

  // The matcher is not content with anything: a spoilt output must not match.
  auto spoilt = capture;
  spoilt.tensors[static_cast<std::size_t>(attn_diag::Tensor::kO)]->bytes[3] ^= std::byte{0x40};
  CHECK_THAT(spoilt, !matches_reference(Stage::kReduce));
}

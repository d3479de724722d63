#include "attn_diag/harness/mismatch.h"

#include <cmath>

#include "attn_diag/harness/catch2.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/reference/reference.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/fake_kernels.h"

namespace attn_diag {
namespace {

Capture run_fake(const std::string& kernel, const RunOptions& options = {}) {
  const Problem p = fake_problem();
  return run_kernel({fake_kernel(kernel), p, make_inputs(p, "randn", 1, 0.5), options});
}

}  // namespace

TEST_CASE("a right capture matches in every stage and tensor") {
  const Capture capture = run_fake("right");
  CHECK_THAT(capture, matches_reference());
  for (const Stage s : {Stage::kQk, Stage::kSoftmax, Stage::kPv, Stage::kReduce})
    CHECK_THAT(capture, matches_reference(s));
  CHECK_THAT(capture, matches_reference(Tensor::kP));
}

TEST_CASE("a wrong stage fails alone, and a wrong tensor too") {
  const Capture capture = run_fake("divides-twice");
  CHECK_THAT(capture, matches_reference(Stage::kPv));
  CHECK_THAT(capture, matches_reference(Tensor::kLse));
  CHECK_THAT(capture, !matches_reference(Stage::kReduce));
  CHECK_THAT(capture, !matches_reference(Tensor::kO));
  CHECK_THAT(capture, !matches_reference());
}

TEST_CASE(
    "a failure shows the first mismatch, its surroundings, the bound and how to see it again") {
  const MatchResult result = match_reference(run_fake("divides-twice"), {Stage::kReduce, {}});
  REQUIRE_FALSE(result.matches);
  INFO(result.text);
  CHECK_THAT(result.text,
             contains("on backend host is wrong in 80 of 96 cells; first at o(0, 0, 1, 0)"));
  CHECK_THAT(result.text, contains("head 0, query 1, query tile 0"));
  CHECK_THAT(result.text, contains("actual ") && contains("expected ") && contains("bound ") &&
                              contains("err/bound "));
  // The window: three cells before (none here) and after.
  CHECK_THAT(result.text, contains("kernel") && contains("reference"));
  CHECK_THAT(result.text, contains("Reproduce: attn-diag trace --kernel ") &&
                              contains(":divides-twice") && contains("--mask causal") &&
                              contains("--tile 4x4") && contains("--seed 1") &&
                              contains("--input-scale 0.5"));
}

TEST_CASE("the matcher's description carries the text") {
  const ReferenceMatcher matcher = matches_reference(Stage::kReduce);
  CHECK(matcher.describe() == "matches the reference at stage reduce");
  CHECK_FALSE(matcher.match(run_fake("divides-twice")));
  CHECK_THAT(matcher.describe(), contains("first at o(0, 0, 1, 0)"));
  CHECK(Catch::StringMaker<Capture>::convert(run_fake("right")).find("on host: B=1 H=2 S=6 D=8") !=
        std::string::npos);
}

TEST_CASE("nothing compared is no match, and says why") {
  RunOptions options;
  options.gate = Gate::kQk;
  const MatchResult early = match_reference(run_fake("right", options), {Stage::kReduce, {}});
  CHECK_FALSE(early.matches);
  CHECK_THAT(early.text, contains("Nothing was compared") && contains("gate qk"));
  const MatchResult exempt = match_reference(run_fake("exempt-p"), {{}, Tensor::kP});
  CHECK_FALSE(exempt.matches);
  CHECK_THAT(exempt.text, contains("P is exempt (kept in registers)"));
}

TEST_CASE("a cell written twice or never is no match") {
  const MatchResult twice = match_reference(run_fake("visits-twice"), {Stage::kQk, {}});
  CHECK_FALSE(twice.matches);
  CHECK_THAT(twice.text,
             contains("S has 1 cell written more than once; first (0, 1, 1, 0), 2 times"));
  const MatchResult never = match_reference(run_fake("skips-cell"), {Stage::kReduce, {}});
  CHECK_FALSE(never.matches);
  CHECK_THAT(never.text, contains("o has 1 cell that no thread wrote; first (0, 0, 2, 1)"));
}

TEST_CASE("NaN never matches") {
  Capture capture = run_fake("right");
  TensorData& o = *capture.tensors[static_cast<std::size_t>(Tensor::kO)];
  store_element(o.bytes.data(), o.dtype, 5, std::nan(""));
  const MatchResult result = match_reference(capture, {{}, Tensor::kO});
  CHECK_FALSE(result.matches);
  CHECK_THAT(result.text, contains("actual nan"));
}

TEST_CASE("a perturbation of twice the bound is seen, and one of half the bound is not") {
  Capture capture = run_fake("right");
  TensorData& lse = *capture.tensors[static_cast<std::size_t>(Tensor::kLse)];
  const Problem p = fake_problem();
  reference::Options options;
  const auto expected =
      reference::compute(p, capture.geometry, capture.arithmetic,
                         {capture.q.data(), capture.k.data(), capture.v.data()}, options);
  const auto at = static_cast<std::size_t>(Tensor::kLse);
  const double value = expected.value[at][4], bound = expected.bound[at][4];
  store_element(lse.bytes.data(), lse.dtype, 4, value + 0.5 * bound);
  CHECK_THAT(capture, matches_reference(Tensor::kLse));
  store_element(lse.bytes.data(), lse.dtype, 4, value + 2 * bound);
  CHECK_THAT(capture, !matches_reference(Tensor::kLse));
  CHECK_THAT(capture, matches_reference(Tensor::kLse, Tolerance{false, 1e-3, 0.0}));
}

TEST_CASE("inputs of the test's own have no command that makes them again") {
  const Problem p = fake_problem();
  InputData inputs = make_inputs(p, "randn", 1, 1.0);
  inputs.kind = "mine";
  CHECK(repro_command(run_kernel({fake_kernel("right"), p, inputs, {}})).empty());
}

}  // namespace attn_diag

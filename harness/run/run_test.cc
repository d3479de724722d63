#include "attn_diag/harness/run.h"

#include <cmath>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "harness/run/run_plan.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/fake_kernels.h"

namespace attn_diag {
namespace {

Capture run_fake(const std::string& kernel, const RunOptions& options = {},
                 const Problem& problem = fake_problem()) {
  return run_kernel({fake_kernel(kernel), problem, make_inputs(problem, "randn", 1, 1.0), options});
}

std::int64_t never(const Capture& c, Tensor t) {
  return c.coverage[static_cast<std::size_t>(t)].never;
}

}  // namespace

TEST_CASE("a run records every stage up to its gate, and nothing after it") {
  RunOptions options;
  options.gate = Gate::kSoftmax;
  const Capture c = run_fake("right", options);
  CHECK(c.has(Tensor::kS));
  CHECK(c.has(Tensor::kM));
  CHECK(c.has(Tensor::kL));
  CHECK(c.has(Tensor::kP));
  CHECK_FALSE(c.has(Tensor::kPartialO));
  CHECK_FALSE(c.has(Tensor::kO));
  CHECK(c[Tensor::kP].shape == std::vector<std::int64_t>{1, 2, 6, 6});
  CHECK(c.provenance.gate == "softmax");
  CHECK(compare_with_reference(c, {}).agrees());
}

TEST_CASE("captures share the inputs they were run on, and what the reference says of them") {
  const Experiment experiment{fake_kernel("right"), fake_problem(),
                              make_inputs(fake_problem(), "randn", 1, 1.0)};
  const Capture first = run_kernel(experiment), second = run_kernel(experiment);
  CHECK(first.q.data() == experiment.inputs.q.data());
  CHECK(first.k.data() == experiment.inputs.k.data());
  CHECK(first.v.data() == experiment.inputs.v.data());
  CHECK(second.v.data() == first.v.data());
  REQUIRE(first.oracle != nullptr);
  CHECK(first.oracle == second.oracle);
  CHECK(experiment.with(RunOptions()).oracle == first.oracle);
  CHECK(experiment.with(fake_problem(), experiment.inputs).oracle != first.oracle);
  // Who writes has bytes of its own.
  Capture other = first;
  other.v.edit()[0] ^= std::byte{1};
  CHECK(first.v[0] == experiment.inputs.v[0]);
  CHECK(first.v[0] != other.v[0]);
}

TEST_CASE("a run without taps has o and lse alone") {
  RunOptions options;
  options.taps = false;
  const Capture c = run_fake("right", options);
  CHECK_FALSE(c.has(Tensor::kS));
  CHECK(c.has(Tensor::kO));
  CHECK(c.has(Tensor::kLse));
  CHECK(c.provenance.gate == "full");
  CHECK(compare_with_reference(c, {}).agrees());
}

TEST_CASE("o is recorded in the logical order of axes in either layout") {
  Problem bshd = fake_problem();
  bshd.layout = Layout::kBSHD;
  bshd.batch = 2;
  Problem bhsd = bshd;
  bhsd.layout = Layout::kBHSD;
  CHECK(run_fake("right", {}, bshd)[Tensor::kO].bytes ==
        run_fake("right", {}, bhsd)[Tensor::kO].bytes);
}

TEST_CASE("a region keeps its rows only, with absolute coordinates") {
  RunOptions options;
  options.region = {{0, 1, 2}, {0, 1, 3}};
  const Capture part = run_fake("right", options), all = run_fake("right");
  CHECK(part.region.extent == std::array<std::int64_t, 3>{1, 1, 3});
  for (const Tensor t : {Tensor::kS, Tensor::kRunningO, Tensor::kO, Tensor::kLse}) {
    INFO(name(t));
    CHECK(part[t].origin[1] == 1);
    CHECK(part[t].origin[2] == 2);
    const std::int64_t row = all[t].size() / 12;
    REQUIRE(part[t].size() == 3 * row);
    for (std::int64_t i = 0; i < 3 * row; ++i)
      REQUIRE(part[t].at(i) == all[t].at((6 + 2) * row + i));  // head 1, query 2
  }
  options.region = {{0, 0, 4}, {1, 1, 3}};
  CHECK_THROWS_WITH(run_fake("right", options), contains("query 4..6, but there are only 0..5"));
}

TEST_CASE("an isolated run feeds every stage the reference's inputs") {
  // o / l^2 is wrong in any case; S of head 1 is wrong, but its P then is right.
  RunOptions options;
  options.isolate = true;
  const Capture c = run_fake("scale-twice", options);
  CHECK(c.isolated);
  const Comparison comparison = compare_with_reference(c, {});
  for (const TensorComparison& t : comparison.tensors) {
    INFO(name(t.tensor));
    CHECK(t.agrees() == (t.tensor != Tensor::kS));
  }
  CHECK_FALSE(compare_with_reference(run_fake("scale-twice"), {}).tensors.back().agrees());
}

TEST_CASE("a tensor can be replaced alone") {
  RunOptions options;
  options.replace = tensor_bit(Tensor::kS);
  const Capture c = run_fake("scale-twice", options);
  CHECK_FALSE(c.isolated);
  for (const TensorComparison& t : compare_with_reference(c, {}).tensors)
    CHECK(t.agrees() == (t.tensor != Tensor::kS));
}

TEST_CASE("a cell that no thread wrote is found, with and without taps") {
  const Capture tapped = run_fake("skips-cell");
  CHECK(never(tapped, Tensor::kS) == 1);
  CHECK(never(tapped, Tensor::kO) == 1);
  CHECK(never(tapped, Tensor::kP) == 0);
  const auto& first = tapped.coverage[static_cast<std::size_t>(Tensor::kO)].first_never;
  REQUIRE(first.has_value());
  CHECK(first->index == std::array<std::int64_t, 5>{0, 0, 2, 1, 0});
  RunOptions options;
  options.taps = false;
  CHECK(never(run_fake("skips-cell", options), Tensor::kO) == 1);
  CHECK(never(run_fake("right", options), Tensor::kO) == 0);
}

TEST_CASE("a cell written twice is found") {
  const Capture c = run_fake("visits-twice");
  const Coverage& s = c.coverage[static_cast<std::size_t>(Tensor::kS)];
  CHECK(s.repeatedly == 1);
  REQUIRE(s.first_repeated.has_value());
  CHECK(s.first_repeated->writes == 2);
  CHECK(s.first_repeated->index == std::array<std::int64_t, 5>{0, 1, 1, 0, 0});
}

TEST_CASE("a tensor a kernel cannot expose is exempt, with its reason") {
  const Capture c = run_fake("exempt-p");
  CHECK_FALSE(c.has(Tensor::kP));
  CHECK(c.exempt[static_cast<std::size_t>(Tensor::kP)] == "kept in registers");
}

TEST_CASE("a write outside the outputs is an error that says where") {
  CHECK_THROWS_AS(run_fake("writes-outside"), Error);
  CHECK_THROWS_WITH(run_fake("writes-outside"), contains("wrote outside o: first at byte 384"));
}

TEST_CASE("a refused launch is an error with the kernel's words") {
  CHECK_THROWS_AS(run_fake("refuses-to-launch"), Error);
  CHECK_THROWS_WITH(run_fake("refuses-to-launch"), contains("failed to launch: out of luck."));
}

TEST_CASE("what a kernel does not support is refused with what it does") {
  Problem p = fake_problem();
  p.dtype = DType::kFp16;
  CHECK_THROWS_WITH(run_fake("right", {}, p), contains("only fp32."));
  RunOptions options;
  options.tile = {8, 8};
  CHECK_THROWS_WITH(run_fake("right", options),
                    contains("no tile shape 8x8. Compiled are: 4x4, 2x2"));
  options.tile = {2, 2};
  CHECK(run_fake("right", options).geometry.tile.block_n == 2);
  options.num_splits = 3;
  CHECK_THROWS_WITH(run_fake("right", options), contains("does not split the keys"));
  CHECK_THROWS_WITH(run_fake("no-taps"), contains("built without gate reduce. It has: full"));
  options = {};
  options.schedule = "sideways";
  CHECK_THROWS_AS(run_fake("right", options), Error);
  options.schedule = "lockstep";
  CHECK_THROWS_AS(run_fake("right", options), Error);
}

TEST_CASE("a capture larger than memory is refused with its size and the flags that cut it") {
  Problem p = fake_problem();
  p.seqlen_q = p.seqlen_k = 2'000'000;
  p.head_dim = p.head_dim_v = 1;
  // Not allocated: sizes are checked first. 2 heads * (2e6)^2 * (S and P) * 5 bytes and more.
  const InputData inputs = make_inputs(p, "ones", 0, 1.0);
  CHECK_THROWS_AS(run_kernel({fake_kernel("right"), p, inputs, {}}), Error);
  CHECK_THROWS_WITH(run_kernel({fake_kernel("right"), p, inputs, {}}),
                    contains("TiB") && contains("--head") && contains("--query") &&
                        contains("--batch-index") && contains("--stage"));
}

TEST_CASE("the memory limit counts what is recorded") {
  RunOptions options;
  const Problem p = fake_problem();
  const Kernel kernel = fake_kernel("right");
  const double all = run_bytes(kernel, p, plan_geometry(kernel, p, options), options);
  options.memory_limit = static_cast<std::int64_t>(all);
  CHECK_NOTHROW(run_fake("right", options));
  options.memory_limit -= 1;
  CHECK_THROWS_WITH(run_fake("right", options), contains("KiB"));
  options.region.extent = {1, 1, 1};
  CHECK_NOTHROW(run_fake("right", options));
}

TEST_CASE("inputs of the wrong size are refused") {
  const Problem p = fake_problem();
  InputData inputs = make_inputs(p, "randn", 0, 1.0);
  inputs.v.edit().pop_back();
  CHECK_THROWS_WITH(run_kernel({fake_kernel("right"), p, inputs, {}}),
                    contains("needs 384 bytes of v, but 383 were given"));
}

TEST_CASE("NaN among the inputs is allowed and noted") {
  const Problem p = fake_problem();
  InputData inputs = make_inputs(p, "randn", 0, 1.0);
  store_element(inputs.k.edit().data(), p.dtype, 3, std::nan(""));
  inputs.has_nonfinite = has_nonfinite(inputs.k, p.dtype);
  const Capture c = run_kernel({fake_kernel("right"), p, inputs, {}});
  bool noted = false;
  for (const std::string& note : c.notes) noted |= note == "q, k or v hold NaN or infinity.";
  CHECK(noted);
}

TEST_CASE("the provenance says what was run") {
  RunOptions options;
  options.schedule = "reverse";
  options.mma_order = 18446744073709551615u;
  options.async_copies = "early";
  const Capture c = run_fake("right", options);
  CHECK(c.provenance.backend == "host");
  CHECK(c.provenance.gate == "reduce");
  CHECK(c.provenance.schedule == "reverse");
  CHECK(c.provenance.mma_order == 18446744073709551615u);
  CHECK(c.provenance.async_copies == "early");
  CHECK(c.provenance.inputs == "randn");
  CHECK(c.provenance.seed == 1);
  CHECK(c.provenance.created.size() == 20);
  CHECK_FALSE(c.provenance.generator_version.empty());
}

}  // namespace attn_diag

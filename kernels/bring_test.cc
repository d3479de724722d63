// Kernels brought by bring.h: what is declared is what is refused, converted and compared.
#include <attn_diag/harness/error.h>
#include <attn_diag/harness/kernel.h>
#include <attn_diag/harness/run.h>
#include <attn_diag/harness/trace.h>
#include "harness/testing/catch_for_tests.h"

#include <cmath>

namespace attn_diag {
namespace {

Kernel brought(const std::string& name) {
  return Kernel::load(std::string(ATTN_DIAG_BROUGHT) + ":" + name, "host");
}

Problem small() {
  Problem p;
  p.batch = 2;
  p.heads = p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 34;
  p.head_dim = p.head_dim_v = 16;
  p.dtype = DType::kFp32;
  p.softmax_scale = 0.25f;
  return p;
}

Capture run(const std::string& name, const Problem& p = small(), const RunOptions& options = {}) {
  return run_kernel({brought(name), p, make_inputs(p, "randn", 1, 1.0), options});
}

std::vector<std::string> diverging(const Capture& capture) {
  std::vector<std::string> names;
  for (const TensorComparison& t : compare_with_reference(capture, {}).tensors)
    if (!t.agrees()) names.emplace_back(name(t.tensor));
  return names;
}

const std::vector<std::string> kNothing;

}  // namespace

TEST_CASE("a brought kernel's outputs and declared stages agree with the reference") {
  for (const DType dtype : {DType::kFp32, DType::kFp16}) {
    Problem p = small();
    p.dtype = dtype;
    p.mask.kind = MaskKind::kCausal;
    const Capture c = run("right", p);
    for (const Tensor t : {Tensor::kS, Tensor::kM, Tensor::kL, Tensor::kP, Tensor::kPartialO,
                           Tensor::kLse, Tensor::kO})
      CHECK(c.has(t));
    CHECK(diverging(c) == kNothing);
    CHECK(c.exempt[static_cast<std::size_t>(Tensor::kRunningM)] ==
          "not among the adapter's .stages");
  }
}

TEST_CASE("a run of a brought kernel may end at a stage that it declares, and at no other") {
  RunOptions options;
  options.gate = Gate::kQk;
  const Capture c = run("right", small(), options);
  CHECK(c.has(Tensor::kS));
  CHECK_FALSE(c.has(Tensor::kP));
  CHECK_FALSE(c.has(Tensor::kO));
  CHECK(diverging(c) == kNothing);
  CHECK_THROWS_WITH(run("base2-lse", small(), options), contains("built without gate qk"));
}

TEST_CASE("a region of a brought kernel's stages has absolute coordinates") {
  RunOptions options;
  options.region = {{1, 0, 5}, {1, 2, 3}};
  const Capture part = run("right", small(), options), all = run("right");
  for (std::int64_t i = 0; i < 3 * 34; ++i)
    REQUIRE(part[Tensor::kP].at(i) == all[Tensor::kP].at((2 * 34 + 5) * 34 + i));
  CHECK(diverging(part) == kNothing);
}

TEST_CASE("a stage cell that a brought kernel does not write is found") {
  const Capture c = run("skips-key");
  const Coverage& s = c.coverage[static_cast<std::size_t>(Tensor::kS)];
  CHECK(s.never == 2 * 2 * 34);
  REQUIRE(s.first_never.has_value());
  CHECK(s.first_never->index == std::array<std::int64_t, 5>{0, 0, 0, 1, 0});
}

TEST_CASE("what a kernel of fp16 or bf16 writes in fp32 is rounded behind the call") {
  Problem p = small();
  for (const DType dtype : {DType::kFp16, DType::kBf16}) {
    p.dtype = dtype;
    CHECK(diverging(run("wide-output", p)) == kNothing);
  }
  p.dtype = DType::kFp16;
  CHECK(diverging(run("adds-to-wide-output", p)) == kNothing);
  CHECK(diverging(run("adds-to-output", p)) == kNothing);
  const Capture c = run("wide-output-skips-row", p);
  const Coverage& o = c.coverage[static_cast<std::size_t>(Tensor::kO)];
  CHECK(o.never == 2 * 2 * 16);
  REQUIRE(o.first_never.has_value());
  CHECK(o.first_never->index == std::array<std::int64_t, 5>{0, 0, 3, 0, 0});
}

TEST_CASE("a problem outside the declaration is refused with what is declared") {
  Problem p = small();
  p.dtype = DType::kBf16;
  CHECK_THROWS_WITH(run("right", p),
                    contains("dtype bf16 is not among what it declares: dtype fp16, fp32; "
                             "head_dim up to 128; mask none, causal (seqlen_q = seqlen_k); "
                             "layout BHSD; head_dim_v = head_dim; kv_heads = heads; "
                             "seqlen_q = seqlen_k; seqlen_q a multiple of 2; seqlen_k up "
                             "to 4096."));
  const auto refused = [](auto change) {
    Problem changed = small();
    change(changed);
    try {
      run("right", changed);
    } catch (const Error& e) {
      const std::string text = e.what();
      const std::size_t from = text.find("problem: ") + 9;
      return text.substr(from, text.find(" is not among") - from);
    }
    return std::string("it ran");
  };
  CHECK(refused([](Problem& x) { x.layout = Layout::kBSHD; }) == "layout BSHD");
  CHECK(refused([](Problem& x) { x.head_dim = x.head_dim_v = 256; }) == "head_dim 256");
  CHECK(refused([](Problem& x) { x.head_dim_v = 8; }) == "head_dim_v 8 with head_dim 16");
  CHECK(refused([](Problem& x) { x.kv_heads = 1; }) == "1 kv_heads for 2 heads");
  CHECK(refused([](Problem& x) { x.seqlen_k = 36; }) == "seqlen_q 34 with seqlen_k 36");
  CHECK(refused([](Problem& x) { x.seqlen_q = x.seqlen_k = 33; }) == "seqlen_q 33");
  CHECK(refused([](Problem& x) {
          x.mask = {MaskKind::kWindow, {}, 3, 0};
        }) == "mask window:3,0 with seqlen_q 34 and seqlen_k 34");
  CHECK(refused([](Problem& x) { x.mask.kind = MaskKind::kCausal; }) == "it ran");
}

TEST_CASE("an lse in base 2 agrees if declared, and diverges if not") {
  CHECK(diverging(run("base2-lse")) == kNothing);
  CHECK(diverging(run("base2-lse-undeclared")) == std::vector<std::string>{"lse"});
}

TEST_CASE("what an undeclared base 2 looks like is said") {
  const auto hints = [](const std::string& kernel) {
    const Problem p = small();
    std::string text;
    for (const PatternStatement& s :
         trace({brought(kernel), p, make_inputs(p, "randn", 1, 1.0)}, {}).pattern)
      text += s.text + "\n";
    return text;
  };
  CHECK_THAT(hints("base2-lse-undeclared"), contains("actual = 1.443 * expected throughout") &&
                                                contains("that is log2 e: fits an lse in base 2"));
  CHECK_THAT(hints("base2-scores-undeclared"), contains("that is log2 e: fits scores in base 2"));
}

TEST_CASE("a kernel that declares no lse is compared on o alone") {
  const Capture c = run("no-lse");
  CHECK_FALSE(c.has(Tensor::kLse));
  CHECK(c.exempt[static_cast<std::size_t>(Tensor::kLse)] ==
        "the kernel declares that it writes none");
  const Comparison comparison = compare_with_reference(c, {});
  REQUIRE(comparison.tensors.size() == 1);
  CHECK(comparison.tensors[0].tensor == Tensor::kO);
  CHECK(comparison.agrees());
  CHECK(run("no-lse-undeclared").coverage[static_cast<std::size_t>(Tensor::kLse)].never ==
        2 * 2 * 34);
}

TEST_CASE("scores in other units are converted as declared") {
  CHECK(diverging(run("base2-scores")) == kNothing);
  CHECK(diverging(run("unscaled-scores")) == kNothing);
  CHECK(diverging(run("base2-scores-undeclared")) == std::vector<std::string>{"S", "m"});
}

TEST_CASE("normalised partials are multiplied back by l if declared, and diverge if not") {
  CHECK(diverging(run("normalised")) == kNothing);
  CHECK(diverging(run("normalised-undeclared")) == std::vector<std::string>{"partial_o"});
  const Capture c = run("normalised-without-l");
  CHECK_FALSE(c.has(Tensor::kPartialO));
  CHECK_THAT(c.exempt[static_cast<std::size_t>(Tensor::kPartialO)],
             contains("divided by l, which the kernel does not expose"));
  CHECK(diverging(c) == kNothing);
}

TEST_CASE("what goes wrong in the user's host code is an error in words") {
  CHECK_THROWS_WITH(run("throws"), contains("its host code threw: no plan for this shape."));
  CHECK_THROWS_WITH(run("throws-number"), contains("no std::exception"));
  CHECK_THROWS_WITH(run("refuses"),
                    contains("does not support this run: batch times heads must be even"));
  CHECK_THROWS_WITH(run("wrong-element"),
                    contains("asks for elements of 8 bytes, but those of the problem have 4"));
  CHECK_THROWS_WITH(run("undeclared-stage"), contains("stage(S): add the tensor to .stages"));
  CHECK_THROWS_WITH(run("too-many-threads"), contains("4096"));
}

TEST_CASE("a call that launches nothing and writes nothing is no run, and that is said") {
  CHECK_THROWS_WITH(run("does-nothing"), contains("launched"));
}

TEST_CASE("a brought kernel's stages cannot be fed, and that is said") {
  RunOptions options;
  options.isolate = true;
  CHECK_THROWS_WITH(run("right", small(), options), contains("recorded only"));
  const Problem p = small();
  const TraceResult traced = trace({brought("right"), p, make_inputs(p, "randn", 1, 1.0)}, {});
  CHECK(traced.agrees());
  for (const StageReport& stage : traced.stages) CHECK(stage.isolated == Verdict::kExempt);
}

}  // namespace attn_diag

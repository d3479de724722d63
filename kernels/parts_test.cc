// Kernels of a part of attention, and of inputs as codes (testing/parts.cu): the right ones agree, the broken
// ones diverge in what they make, and what they do not make is not judged.
#include <attn_diag/harness/check_kernel.h>
#include <attn_diag/harness/diagnose_kernel.h>
#include <attn_diag/harness/dump.h>
#include <attn_diag/harness/error.h>
#include <attn_diag/harness/kernel.h>
#include <attn_diag/harness/run.h>
#include <attn_diag/harness/trace.h>
#include <attn_diag/harness/xray.h>
#include "harness/testing/catch_for_tests.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "attn_diag/kernels/coding.h"
#include "harness/diagnose/tap_lines.h"

namespace attn_diag {
namespace {

Kernel part(const std::string& name) {
  return Kernel::load(std::string(ATTN_DIAG_PARTS) + ":" + name, "host");
}

Problem small(DType dtype = DType::kFp16) {
  Problem p;
  p.batch = 2;
  p.heads = p.kv_heads = 3;
  p.seqlen_q = p.seqlen_k = 34;
  p.head_dim = p.head_dim_v = 24;
  p.dtype = dtype;
  p.softmax_scale = 1 / std::sqrt(24.0f);
  return p;
}
Problem causal() {
  Problem p = small();
  p.mask.kind = MaskKind::kCausal;
  return p;
}

Capture run(const std::string& name, const Problem& p, const std::string& inputs = "randn",
            const RunOptions& options = {}) {
  return run_kernel({part(name), p, make_inputs(p, inputs, 1, 1.0), options});
}

// "S: agrees" and the like, of all that was compared.
std::vector<std::string> verdicts(const Capture& capture) {
  std::vector<std::string> out;
  for (const TensorComparison& t : compare_with_reference(capture, {}).tensors)
    out.push_back(std::string(name(t.tensor)) + (t.agrees() ? " agrees" : " diverges"));
  return out;
}
using Verdicts = std::vector<std::string>;

std::string exempt(const Capture& c, Tensor t) { return c.exempt[static_cast<std::size_t>(t)]; }

}  // namespace

TEST_CASE("a kernel of q and k is judged by S, and by nothing else") {
  for (const Problem& p : {small(), causal()}) {
    const Capture c = run("scores", p);
    CHECK(verdicts(c) == Verdicts{"S agrees"});
    for (const Tensor t : {Tensor::kM, Tensor::kP, Tensor::kO})
      CHECK(exempt(c, t) == "the kernel computes S alone");
    CHECK(exempt(c, Tensor::kS).empty());
    CHECK(verdicts(run("scores-scale-missing", p)) == Verdicts{"S diverges"});
  }
  CHECK(verdicts(run("scores-mask-off-by-one", causal())) == Verdicts{"S diverges"});
  CHECK(verdicts(run("raw-half-scores", small())) == Verdicts{"S agrees"});
}

TEST_CASE("a score that is not written is found, as fp32 and in the production run alike") {
  for (const bool taps : {true, false}) {
    RunOptions options;
    options.taps = taps;
    const Capture c = run("scores-key-not-written", small(), "randn", options);
    const Coverage& s = c.coverage[static_cast<std::size_t>(Tensor::kS)];
    CHECK(s.never == 2 * 3 * 34);
    REQUIRE(s.first_never.has_value());
    CHECK(s.first_never->index == std::array<std::int64_t, 5>{0, 0, 0, 1, 0});
  }
}

TEST_CASE("a kernel that is given S is judged by what it makes of it") {
  for (const Problem& p : {small(), causal()})
    for (const char* inputs : {"randn", "probe"}) {
      CHECK(verdicts(run("of-scores", p, inputs)) == Verdicts{"lse agrees", "o agrees"});
      CHECK(verdicts(run("of-half-scores", p, inputs)) == Verdicts{"lse agrees", "o agrees"});
    }
  const Capture c = run("of-scores", small());
  CHECK(exempt(c, Tensor::kS) == "it is given");
  CHECK(exempt(c, Tensor::kP) == "not among the adapter's .stages");
  CHECK(verdicts(run("of-scores-last-key-not-in-l", small())) ==
        Verdicts{"lse diverges", "o diverges"});
  CHECK(verdicts(run("of-scores-rows-of-v-swapped", small())) ==
        Verdicts{"lse agrees", "o diverges"});
}

TEST_CASE(
    "a kernel that is given S before scale and mask is judged by what it makes of all three") {
  for (Problem p : {small(), causal()})
    for (const float scale : {p.softmax_scale, 0.7f, -0.3f, 0.0f})
      for (const char* inputs : {"randn", "probe", "heavy"}) {
        INFO(scale << ' ' << inputs);
        if (scale == 0 && std::string_view(inputs) == "probe") continue;  // they are divided by it
        p.softmax_scale = scale;
        CHECK(verdicts(run("of-raw-scores", p, inputs)) == Verdicts{"lse agrees", "o agrees"});
        CHECK(verdicts(run("of-raw-half-scores", p, inputs)) == Verdicts{"lse agrees", "o agrees"});
      }
  CHECK(exempt(run("of-raw-scores", small()), Tensor::kS) == "it is given");
  CHECK(verdicts(run("of-raw-scores-mask-off-by-one", small())) ==
        Verdicts{"lse agrees", "o agrees"});
  CHECK(verdicts(run("of-raw-scores-mask-off-by-one", causal())) ==
        Verdicts{"lse diverges", "o diverges"});
  CHECK(verdicts(run("of-raw-scores-scale-missing", small())) ==
        Verdicts{"lse diverges", "o diverges"});
  // What is given is not masked: a kernel that does not mask is wrong.
  CHECK(verdicts(run("of-raw-scores-no-mask", causal())) == Verdicts{"lse diverges", "o diverges"});
}

TEST_CASE("a kernel that is given P is judged by o alone") {
  for (const Problem& p : {small(), causal()})
    for (const char* inputs : {"randn", "probe", "ones", "heavy", "cancel"}) {
      CHECK(verdicts(run("of-probs", p, inputs)) == Verdicts{"o agrees"});
      CHECK(verdicts(run("of-half-probs", p, inputs)) == Verdicts{"o agrees"});
    }
  CHECK(verdicts(run("of-fp32-probs", small(DType::kFp32))) == Verdicts{"o agrees"});
  CHECK(exempt(run("of-probs", small()), Tensor::kP) == "it is given");
  CHECK(verdicts(run("of-probs-rows-of-v-swapped", small())) == Verdicts{"o diverges"});
}

TEST_CASE("many keys, whose probabilities are subnormal in fp16, are given as they are") {
  Problem p = small();
  p.batch = p.heads = p.kv_heads = 1;
  p.seqlen_q = p.seqlen_k = 1024;
  CHECK(verdicts(run("of-half-probs", p)) == Verdicts{"o agrees"});
}

TEST_CASE("what a kernel is given of S or P is an input that it must not write") {
  const Capture c = run("of-probs-clears-its-input", small());
  REQUIRE(c.input_writes.size() == 1);
  CHECK(c.input_writes[0].input == 'P');
  CHECK(c.input_writes[0].cells == 2 * 3 * 34);
  CHECK(c.input_writes[0].after == 0);
}

TEST_CASE("a region of a kernel of a part has absolute coordinates") {
  RunOptions options;
  options.region = {{1, 0, 5}, {1, 2, 3}};
  for (const char* name : {"scores", "of-scores", "of-raw-scores", "of-half-probs"})
    CHECK(verdicts(run(name, causal(), "randn", options)) == verdicts(run(name, causal())));
  CHECK(verdicts(run("scores-mask-off-by-one", causal(), "randn", options)) ==
        Verdicts{"S diverges"});
}

TEST_CASE("trace finds the stage of a part, and says what is not judged") {
  const auto traced = [](const std::string& name) {
    const Problem p = causal();
    return trace({part(name), p, make_inputs(p, "randn", 1, 1.0)}, {});
  };
  const TraceResult right = traced("scores");
  CHECK(right.answer() == Answer::kAgrees);
  CHECK(right.stages[0].verdict == Verdict::kAgrees);
  for (int s = 1; s < kNumStages; ++s)
    CHECK(right.stages[static_cast<std::size_t>(s)].verdict == Verdict::kExempt);
  const TraceResult wrong = traced("scores-mask-off-by-one");
  CHECK(wrong.answer() == Answer::kDiverges);
  REQUIRE(wrong.first.has_value());
  CHECK(wrong.first->tensor == Tensor::kS);
  CHECK(wrong.first->key == 1);
  CHECK(traced("of-scores").answer() == Answer::kAgrees);
  CHECK(traced("of-raw-scores").answer() == Answer::kAgrees);
  CHECK(traced("of-raw-scores-mask-off-by-one").answer() == Answer::kDiverges);
  CHECK(traced("of-probs").answer() == Answer::kAgrees);
  CHECK(traced("of-scores-rows-of-v-swapped").first->tensor == Tensor::kO);
}

TEST_CASE("a dump of a part is judged as the run was") {
  for (const char* name :
       {"scores", "of-scores", "of-raw-half-scores", "of-half-probs", "int8-per-token"}) {
    const std::string path =
        (std::filesystem::temp_directory_path() / (std::string("attn_diag_parts_") + name + ".h5"))
            .string();
    std::filesystem::remove(path);
    const Capture c = run(name, small());
    write_dump(path, c, {});
    const Capture read = read_dump(path);
    CHECK(read.arithmetic.part == c.arithmetic.part);
    const Comparison before = compare_with_reference(c, {}),
                     after = compare_with_reference(read, {});
    REQUIRE(before.tensors.size() == after.tensors.size());
    for (std::size_t i = 0; i < before.tensors.size(); ++i)
      CHECK(before.tensors[i].max_err_over_bound == after.tensors[i].max_err_over_bound);
    std::filesystem::remove(path);
  }
}

TEST_CASE("diagnose knows the parts, and names only what can be wrong of them") {
  const auto diagnosed = [](const std::string& name) {
    const Problem p = causal();
    return diagnose_kernel({part(name), p, make_inputs(p, "probe", 1, 1.0)}, {}, {}).diagnosis;
  };
  for (const char* name :
       {"scores", "of-scores", "of-raw-scores", "of-raw-half-scores", "of-half-probs"})
    CHECK(diagnosed(name).verdict == DiagnosisVerdict::kNothingWrong);
  // Predictions start from S as it should be: what is wrong of scale or mask has no name, and no other bug's.
  for (const char* name : {"of-raw-scores-mask-off-by-one", "of-raw-scores-scale-missing"}) {
    INFO(name);
    const Diagnosis wrong = diagnosed(name);
    CHECK(wrong.verdict != DiagnosisVerdict::kNothingWrong);
    CHECK(wrong.verdict != DiagnosisVerdict::kNamed);
  }
  const Diagnosis mask = diagnosed("scores-mask-off-by-one");
  CHECK(mask.verdict == DiagnosisVerdict::kNamed);
  CHECK(mask.best.at(0).parts.at(0).id == "mask-shift");
  for (const char* name : {"of-scores-rows-of-v-swapped", "of-probs-rows-of-v-swapped"}) {
    const Diagnosis rows = diagnosed(name);
    CHECK((rows.verdict == DiagnosisVerdict::kNamed || rows.verdict == DiagnosisVerdict::kClass));
    for (const Match& match : rows.best) {
      INFO(name << ": " << match.label);
      // What is given is not wrong.
      CHECK(match.label.find("operand = k") == std::string::npos);
      CHECK(match.parts.at(0).id != "scores-fragment");
    }
  }
}

TEST_CASE("an x-ray of a part or of codes is refused, and no tap is named where there is none") {
  for (const char* name : {"scores", "of-scores", "of-probs", "int8-per-token"})
    CHECK_THROWS_WITH(xray({part(name), small(), make_inputs(small(), "randn", 1, 1.0)}, {}),
                      contains("an x-ray is of kernels that compute o of q, k and v as they are"));
  CHECK(find_tap_lines(part("scores").provenance(), Tensor::kS).empty());
}

TEST_CASE("diagnose says what to declare where that alone explains every cell, as run does") {
  const auto said = [](const std::string& name) {
    const Problem p = small();
    std::string all;
    for (const std::string& note :
         diagnose_kernel({part(name), p, make_inputs(p, "randn", 1, 1.0)}, {}, {}).diagnosis.notes)
      all += note + '\n';
    return all;
  };
  CHECK_THAT(said("half-s"), contains("declare .s_in_input_type = true; if it does not"));
  CHECK_THAT(said("without-scale"), contains("run it with --softmax-scale 1"));
  CHECK(verdicts(run("half-s-declared", small())) == Verdicts{"lse agrees", "o agrees"});
  CHECK(said("half-s-declared").find("declare") == std::string::npos);
  CHECK(said("scores-scale-missing").find("declare") == std::string::npos);
}

TEST_CASE("adapters and declarations that do not fit are told what does") {
  CHECK_THROWS_WITH(run("asks-for-probs", small()),
                    contains("probs(): declare .part = Part::kFromProbs"));
  CHECK_THROWS_WITH(run("asks-for-half-scores", small()),
                    contains("scores() asks for elements of 2 bytes, but has 4"));
  CHECK_THROWS_WITH(run("asks-for-codes", small()),
                    contains("coded_k(): declare the type of its codes in .k_codes"));
  CHECK_THROWS_WITH(run("of-unscaled-scores", small()),
                    contains("is given S scaled and masked") && contains("kFromRawScores"));
}

TEST_CASE("a kernel of codes is judged by what they mean") {
  for (const char* name : {"int8-per-tensor", "int8-per-token", "uint8-per-head",
                           "uint8-per-batch-head", "e4m3-per-head", "e5m2-per-token"})
    for (const char* inputs : {"randn", "probe"}) {
      INFO(name << ' ' << inputs);
      const Capture c = run(name, small(), inputs);
      CHECK(verdicts(c) == Verdicts{"lse agrees", "o agrees"});
      CHECK(c.q == make_inputs(small(), inputs, 1, 1.0).q);
      CHECK(c.k != make_inputs(small(), inputs, 1, 1.0).k);
    }
  for (const char* name : {"int8-other-scale", "int8-other-heads-scale", "uint8-no-zero"}) {
    INFO(name);
    CHECK(verdicts(run(name, small())) == Verdicts{"lse diverges", "o diverges"});
  }
}

TEST_CASE("inputs that no code means are refused") {
  Problem p = small();
  InputData inputs = make_inputs(p, "randn", 1, 1.0);
  store_element(inputs.k.edit().data(), p.dtype, 5, std::nan(""));
  CHECK_THROWS_WITH(run_kernel({part("int8-per-token"), p, inputs}),
                    contains("k holds NaN or infinity, but the kernel takes it as int8 codes"));
}

TEST_CASE("what codes mean is what the same codes mean again, of every type, size and scale") {
  const CodedShape shape{2, 3, 17, 8, Layout::kBSHD};
  const auto count = static_cast<std::size_t>(2 * 3 * 17 * 8);
  for (const CodeType type : {CodeType::kInt8, CodeType::kUint8, CodeType::kE4m3, CodeType::kE5m2})
    for (const ScalePer per : {ScalePer::kTensor, ScalePer::kNone, ScalePer::kHead,
                               ScalePer::kBatchHead, ScalePer::kToken})
      for (int exponent = -20; exponent <= 12; ++exponent) {
        const Codes codes{type, per};
        std::vector<float> x(count);
        std::uint32_t state = 7;
        for (float& value : x) {
          state = state * 1664525u + 1013904223u;
          value = std::ldexp(static_cast<float>(state >> 8) / 0x1p23f - 1.0f, exponent);
        }
        const auto load = [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
        const CodedTensor once = encode(codes, 1, shape, load);
        float largest = 0, furthest = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const float meant = decode(codes, once, shape.dim, i);
          largest = std::max(largest, std::fabs(x[i]));
          furthest = std::max(furthest, std::fabs(x[i] - meant));
          x[i] = meant;
        }
        const CodedTensor again = encode(codes, 1, shape, load);
        std::set<float> scales;
        for (std::size_t i = 0; i < count; ++i) REQUIRE(decode(codes, again, shape.dim, i) == x[i]);
        for (const CodeGroup& group : again.groups) scales.insert(group.scale);
        if (per == ScalePer::kNone) {
          CHECK(scales == std::set<float>{1.0f});
          continue;  // how near a code is depends on the numbers
        }
        CHECK(scales.size() >= (per == ScalePer::kTensor ? 1u : 2u));
        if (exponent > -8) CHECK(furthest <= largest / 8);
      }
}

TEST_CASE("check watches what a kernel is given of S and what it makes of it") {
  for (const char* name : {"scores", "of-scores", "of-half-probs", "uint8-per-head"}) {
    INFO(name);
    const Problem p = small();
    const CheckResult result =
        check_kernel({part(name), p, make_inputs(p, "randn", 1, 1.0)}, host::CheckOptions());
    for (const host::CheckFinding& f : result.report.findings)
      UNSCOPED_INFO(f.message << " " << f.array << " " << f.offset << " " << f.space << " "
                              << f.kernel);
    CHECK(result.report.findings.empty());
  }
  const Problem p = small();
  const CheckResult result =
      check_kernel({part("of-probs-clears-its-input"), p, make_inputs(p, "randn", 1, 1.0)},
                   host::CheckOptions());
  REQUIRE(result.report.findings.size() == 1);
  CHECK(result.report.findings[0].kind == host::CheckKind::kInputWrite);
  CHECK(result.report.findings[0].array == "P");
}

}  // namespace attn_diag

// Properties: what holds of right kernels, and which flaw breaks which.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/xray.h"
#include "harness/testing/catch_for_tests.h"
#include "harness/testing/shipped_kernels.h"

namespace attn_diag {
namespace {

using Verdict = PropertyResult::Verdict;
using Names = std::set<std::string>;

Problem problem_of(DType dtype, MaskKind mask) {
  Problem p;
  p.batch = 2;
  p.heads = 4;
  p.kv_heads = 2;
  p.seqlen_q = 24;
  p.seqlen_k = 40;
  p.head_dim = p.head_dim_v = 32;
  p.dtype = dtype;
  p.mask.kind = mask;
  p.mask.alignment = CausalAlignment::kBottomRight;
  p.softmax_scale = static_cast<float>(1.0 / std::sqrt(32.0));
  return p;
}

Names named(const std::vector<PropertyResult>& results, Verdict verdict) {
  Names names;
  for (const PropertyResult& r : results)
    if (r.verdict == verdict) names.insert(info(r.property).name);
  return names;
}

std::vector<PropertyResult> of_flaw(const std::string& name, const Problem& p) {
  const Kernel kernel = Kernel::load(std::string(ATTN_DIAG_FLAWED_KERNELS) + ":" + name, "host");
  return check_properties({kernel, p, make_inputs(p, "randn", 3, 1.0)}, {});
}
Names broken_by(const std::string& name) {
  const std::vector<PropertyResult> results =
      of_flaw(name, problem_of(DType::kFp32, MaskKind::kCausal));
  CHECK(named(results, Verdict::kNotTried).empty());
  return named(results, Verdict::kBroken);
}

}  // namespace

TEST_CASE("every property holds of every right kernel") {
  for (const std::string& name : testing::shipped_kernels()) {
    const Kernel kernel = Kernel::load(name, "host");
    for (const DType dtype : {DType::kFp16, DType::kBf16, DType::kFp32}) {
      if (dtype == DType::kFp32 && name.starts_with("fused")) continue;
      for (const std::string inputs : {"randn", "probe"}) {
        const Problem p = problem_of(dtype, MaskKind::kCausal);
        const auto results = check_properties({kernel, p, make_inputs(p, inputs, 3, 1.0)}, {});
        REQUIRE(results.size() == kNumProperties);
        for (const PropertyResult& r : results) {
          INFO(name << ' ' << static_cast<int>(dtype) << ' ' << inputs << ' '
                    << info(r.property).name << ": " << r.why_not << ' ' << r.broken << " of "
                    << r.compared << ", " << r.max_err_over_bound);
          CHECK(r.verdict == Verdict::kHolds);
          CHECK(r.compared >= 24);
        }
      }
    }
  }
  CHECK(broken_by("right").empty());
}

TEST_CASE("each flaw breaks the properties that mean it") {
  CHECK(broken_by("starts-at-constant") == Names{"doubled-v", "sum-of-v", "constant-v", "zero-q"});
  const Names by_v = broken_by("weighs-by-v");
  CHECK(by_v.count("sum-of-v") == 1);
  CHECK(by_v.count("doubled-v") == 0);
  CHECK(by_v.count("constant-v") == 0);
  const Names zero_key = broken_by("counts-zero-key");
  CHECK(zero_key == Names{"shifted-keys", "duplicated-keys", "constant-v", "zero-q"});
  CHECK(broken_by("marks-second-tile") == Names{"permuted-keys", "duplicated-keys", "zero-q"});
  CHECK(broken_by("drops-tail") == Names{"permuted-keys", "duplicated-keys", "zero-q"});
  CHECK(broken_by("divides-twice").count("constant-v") == 1);
  CHECK(broken_by("one-past-mask").count("zero-q") == 1);
  CHECK(broken_by("one-past-mask").count("masked-keys") == 1);
  CHECK(broken_by("head-zero") == Names{"other-heads"});
  CHECK(broken_by("mixes-rows") == Names{"shifted-keys", "other-queries"});
  CHECK(broken_by("leaks") == Names{"masked-keys", "zero-q"});
  CHECK(broken_by("no-lse").count("shifted-keys") == 1);
}

TEST_CASE("a broken property says where, and by how much") {
  const auto results = of_flaw("head-zero", problem_of(DType::kFp32, MaskKind::kCausal));
  const auto& r = results[static_cast<std::size_t>(Property::kOtherHeads)];
  REQUIRE(r.verdict == Verdict::kBroken);
  CHECK(r.property == Property::kOtherHeads);
  CHECK(r.tensor == Tensor::kO);
  // Head 0 was changed first; head 2 is the first of the other KV head, which reads its k.
  CHECK(r.index == std::array<std::int64_t, 4>{0, 2, 0, 0});
  CHECK(r.actual != r.expected);
  CHECK(r.max_err_over_bound == HUGE_VAL);
  CHECK(r.broken > 0);
  CHECK(r.broken < r.compared);
}

TEST_CASE("what cannot be tried says why, and is not said to hold") {
  Problem p = problem_of(DType::kFp32, MaskKind::kNone);
  p.batch = 1;
  p.heads = p.kv_heads = 1;
  p.seqlen_q = 1;
  const auto results = of_flaw("right", p);
  CHECK(named(results, Verdict::kNotTried) == Names{"other-heads", "other-queries", "masked-keys"});
  for (const PropertyResult& r : results)
    CHECK((r.verdict == Verdict::kHolds || r.why_not.find("take --") != std::string::npos));
}

TEST_CASE("a kernel that takes square problems alone has its keys duplicated with its queries") {
  Problem p = problem_of(DType::kFp32, MaskKind::kCausal);
  p.seqlen_k = p.seqlen_q;
  for (const auto& r : of_flaw("square-only", p)) {
    INFO(info(r.property).name << ": " << r.why_not);
    CHECK(r.verdict == Verdict::kHolds);
  }
  // The tail that is dropped is another one of twice as many keys.
  CHECK(named(of_flaw("drops-tail", p), Verdict::kBroken).count("duplicated-keys") == 1);
}

TEST_CASE("where the result is NaN no property is tried, and all say the same: where it begins") {
  const auto results = of_flaw("nan-key", problem_of(DType::kFp32, MaskKind::kCausal));
  REQUIRE(results.size() == kNumProperties);
  for (const PropertyResult& r : results) {
    CHECK(r.verdict == Verdict::kNotTried);
    CHECK(r.why_not == results.front().why_not);
  }
  CHECK_THAT(results.front().why_not,
             contains("NaN begins in lse") && contains("of o hold NaN, 192 of them in every dim"));
}

TEST_CASE("where the result moves by more than rounding no property is tried, and all say so") {
  const auto results = of_flaw("moves", problem_of(DType::kFp32, MaskKind::kCausal));
  REQUIRE(results.size() == kNumProperties);
  for (const PropertyResult& r : results) {
    CHECK(r.verdict == Verdict::kNotTried);
    CHECK_THAT(r.why_not, contains("change with the order in which threads run"));
  }
}

TEST_CASE("what only the mask makes wrong is not held against P V") {
  Problem p = problem_of(DType::kFp32, MaskKind::kCausal);
  p.seqlen_q = 48;  // of which the first 8 see no key
  const auto results = of_flaw("leaks", p);
  CHECK(named(results, Verdict::kExplained) == Names{"sum-of-v", "shifted-keys", "constant-v"});
  CHECK(named(results, Verdict::kBroken) == Names{"zero-q", "masked-keys"});
  const auto& constant = results[static_cast<std::size_t>(Property::kConstantV)];
  CHECK(constant.explained_by == Property::kMaskedKeys);
  CHECK(constant.broken > 0);
  // A wrong sum is not, though the mask is wrong, too.
  CHECK(broken_by("divides-twice").count("constant-v") == 1);
}

TEST_CASE("of right kernels no property breaks at numbers that overflow or underflow") {
  for (const std::string name : {"fa1", "split_k"}) {
    const Kernel kernel = Kernel::load(name, "host");
    for (const DType dtype : {DType::kFp16, DType::kFp32})
      for (const std::string inputs : {"randn", "large", "ones"})
        for (const double scale : {1e-20, 1e-6, 1e3, 1e20}) {
          const Problem p = problem_of(dtype, MaskKind::kCausal);
          const InputData data = make_inputs(p, inputs, 3, scale);
          if (data.has_nonfinite) continue;
          for (const PropertyResult& r : check_properties({kernel, p, data}, {})) {
            INFO(name << ' ' << static_cast<int>(dtype) << ' ' << inputs << " x " << scale << ' '
                      << info(r.property).name << ": " << r.why_not << ' ' << r.broken << " of "
                      << r.compared << ", " << r.max_err_over_bound << ", first " << r.actual
                      << " expected " << r.expected);
            CHECK((r.verdict == Verdict::kHolds || r.verdict == Verdict::kNotTried));
          }
        }
  }
}

TEST_CASE("inputs that hold NaN are refused") {
  Problem p = problem_of(DType::kFp16, MaskKind::kNone);
  const Kernel kernel = Kernel::load("fa1", "host");
  CHECK_THROWS_WITH(check_properties({kernel, p, make_inputs(p, "ones", 0, 1e6)}, {}),
                    contains("NaN or infinity"));
}

}  // namespace attn_diag

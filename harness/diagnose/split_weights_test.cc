#include "harness/diagnose/split_weights.h"

#include <algorithm>
#include <string>
#include <vector>

#include "attn_diag/harness/diagnose.h"
#include "harness/diagnose/testing/buggy_capture.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

using testing::BuggyCase;

BuggyCase three_splits() {
  BuggyCase c = testing::buggy_case();
  c.geometry.num_splits = 3;
  c.geometry.tiles_per_split = 2;
  c.problem.mask = {};
  return c;
}

Diagnosis diagnose_weights(double first, double last, bool o_only, bool with_lse) {
  const BuggyCase c = three_splits();
  reference::Deviation deviation;
  deviation.combine.factors[0] = first;
  deviation.combine.factors[2] = last;
  deviation.combine.factors_o_only = o_only;
  Capture capture = testing::buggy_capture(c, deviation);
  if (!with_lse) capture.tensors[static_cast<std::size_t>(Tensor::kLse)].reset();
  return diagnose(capture, {});
}

std::string weights_named(const Diagnosis& d) {
  for (const Match& match : d.best)
    for (const Match::Part& part : match.parts)
      if (part.id == "split-weights")
        for (const reference::ParameterValue& value : part.parameters)
          if (value.name == "c") return value.named;
  return "none of " + std::to_string(d.best.size());
}

}  // namespace

TEST_CASE("the weights of several splits are read from o, and from lse") {
  CHECK(weights_named(diagnose_weights(0.5, 3, false, true)) == "0.5, 1, 3");
  CHECK(weights_named(diagnose_weights(0.5, 3, false, false)) == "0.5, 1, 3");
  CHECK(weights_named(diagnose_weights(0.5, 3, true, true)) == "0.5, 1, 3");
  CHECK(weights_named(diagnose_weights(0.3, 1.7, false, true)) == "0.3, 1, 1.7");
}

TEST_CASE(
    "weights that depend on the row are described, with how they differ from the right ones") {
  const BuggyCase c = three_splits();
  Capture capture = testing::buggy_capture(c, {});
  // Every row's split 0 alone weighs otherwise: o = right + x(row) O_0.
  reference::Deviation alone;
  alone.combine.only_split = 0;
  const Capture first = testing::buggy_capture(c, alone);
  TensorData& o = *capture.tensors[static_cast<std::size_t>(Tensor::kO)];
  for (std::int64_t i = 0; i < o.size(); ++i) {
    const double row = static_cast<double>(i / c.problem.head_dim_v % 7);
    store_element(o.bytes.data(), o.dtype, i, o.at(i) + 0.05 * (1 + row) * first[Tensor::kO].at(i));
  }
  const Diagnosis d = diagnose(capture, {});
  CHECK(d.verdict != DiagnosisVerdict::kNamed);
  const auto it = std::find_if(d.residual.begin(), d.residual.end(), [](const std::string& s) {
    return s.find("combination of the splits' own outputs") != s.npos;
  });
  REQUIRE(it != d.residual.end());
  CHECK_THAT(*it, contains("split 2: 1 to 1"));
}

}  // namespace attn_diag

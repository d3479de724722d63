#include "harness/diagnose/testing/buggy_capture.h"

#include <cmath>
#include <limits>
#include <vector>

#include "attn_diag/harness/run.h"
#include "harness/testing/captures.h"

#include "reference/counterfactual/testing/rows.h"

namespace attn_diag::testing {
namespace {

using reference::testing::all_rows;

}  // namespace

BuggyCase buggy_case() {
  BuggyCase c;
  c.problem.batch = c.problem.heads = c.problem.kv_heads = 2;
  c.problem.seqlen_q = c.problem.seqlen_k = 96;
  c.problem.head_dim = c.problem.head_dim_v = 16;
  c.problem.softmax_scale = 0.25f;
  c.problem.mask.kind = MaskKind::kCausal;
  c.geometry.tile = {32, 16};
  c.geometry.num_splits = 2;
  c.geometry.tiles_per_split = 3;
  c.geometry.has_split_merge = true;
  return c;
}

reference::PredictionInputs data_of(const BuggyCase& c) {
  const InputData inputs = make_inputs(c.problem, c.inputs, c.seed, 1);
  return reference::PredictionInputs(c.problem, c.geometry, Arithmetic{},
                                     {inputs.q.data(), inputs.k.data(), inputs.v.data()});
}

Capture buggy_capture(const BuggyCase& c, const reference::Deviation& deviation, bool stages) {
  InputData inputs = make_inputs(c.problem, c.inputs, c.seed, 1);
  Capture capture = empty_capture(c.problem, c.geometry);
  capture.q = std::move(inputs.q);
  capture.k = std::move(inputs.k);
  capture.v = std::move(inputs.v);
  capture.arithmetic = Arithmetic{};
  const std::vector<reference::RowIndex> rows = all_rows(c.problem);
  const auto inputs_of_case = [&](std::vector<reference::GivenTensor> given) {
    return reference::PredictionInputs(c.problem, c.geometry, Arithmetic{},
                                       {capture.q.data(), capture.k.data(), capture.v.data()}, {},
                                       std::move(given));
  };
  reference::Prediction predicted;
  reference::predict(inputs_of_case({}), rows, deviation, 0xfffu, predicted);
  if (stages) {
    // As in a kernel, what follows comes from S as it was rounded.
    reference::GivenTensor given{Tensor::kS, {}};
    for (const double x : predicted[Tensor::kS].value)
      given.values.push_back(static_cast<float>(x));
    const reference::Prediction::Values scores = predicted[Tensor::kS];
    reference::predict(inputs_of_case({std::move(given)}), rows, deviation, 0xfffu, predicted);
    predicted[Tensor::kS] = scores;
  }
  for (const TensorInfo& t : kTensors) {
    const bool output = t.id == Tensor::kO || t.id == Tensor::kLse;
    reference::Prediction::Values& values = predicted[t.id];
    if ((!output && !stages) || values.value.empty()) continue;
    for (std::size_t i = 0; i < values.value.size(); ++i)
      if (values.known[i] == 0) values.value[i] = std::numeric_limits<double>::quiet_NaN();
    put(capture, t.id, t.id == Tensor::kO ? c.problem.dtype : DType::kFp32, values.value);
  }
  return capture;
}

}  // namespace attn_diag::testing

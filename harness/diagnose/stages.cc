#include "harness/diagnose/stages.h"

#include <algorithm>
#include <numeric>

#include "attn_diag/harness/error.h"
#include "harness/diagnose/sample.h"
#include "harness/run/run_memory.h"

namespace attn_diag::matching {
namespace {

constexpr int kLocalRows = 96;

bool is_output(Tensor t) { return t == Tensor::kO || t == Tensor::kLse; }

// The tensors before a stage from which the others follow: those inputs of it and of earlier stages that are by key,
// since m and l follow from S, and partial_o from P.
std::vector<Tensor> inputs_of(Stage stage) {
  std::uint32_t inputs = 0;
  for (const StageInfo& s : kStages)
    if (s.id <= stage) inputs |= s.inputs;
  std::vector<Tensor> by_key;
  for (const TensorInfo& t : kTensors)
    if ((inputs & tensor_bit(t.id)) != 0 && t.axes[3] == Axis::kKey) by_key.push_back(t.id);
  return by_key;
}

// An x-ray's S, m, l and P come from o: a bug after P is in them, too, and no prediction has it there.
bool reconstructed(const Capture& capture, Tensor t) { return !capture[t].uncertainty.empty(); }

bool has_whole(const Capture& capture, Tensor t) {
  if (!capture.has(t) || reconstructed(capture, t)) return false;
  const Region all = whole(capture.problem);
  return capture.region.origin == all.origin && capture.region.extent == all.extent &&
         capture.coverage[static_cast<std::size_t>(t)].never == 0;
}

std::vector<Tensor> recorded_of(const Capture& capture, Stage stage, bool outputs) {
  std::vector<Tensor> all;
  for (const TensorInfo& t : kTensors)
    if (t.stage == stage && capture.has(t.id) && !reconstructed(capture, t.id) &&
        (outputs || !is_output(t.id)))
      all.push_back(t.id);
  return all;
}

std::vector<Tensor> whole_inputs(const Capture& capture, Stage stage) {
  const std::vector<Tensor> inputs = inputs_of(stage);
  const bool all =
      std::all_of(inputs.begin(), inputs.end(), [&](Tensor t) { return has_whole(capture, t); });
  return all ? inputs : std::vector<Tensor>{};
}

// Whether some row of a stage is not what its recorded inputs give.
bool wrong_by_itself(const Capture& capture, const Subject& subject,
                     const DiagnoseOptions& options) {
  const Cuts cuts = make_cuts(capture, subject.given, options);
  const Evidence evidence(capture, subject.tensors);
  std::vector<std::int64_t> all(static_cast<std::size_t>(evidence.rows()));
  std::iota(all.begin(), all.end(), 0);
  const Rows rows = read_rows(evidence, cuts.front(), spread(all, kLocalRows));
  for (std::size_t at = 0; at < rows.size(); ++at)
    if (judge_row(evidence, rows, at, rows.right, 0).worst > kNearMiss) return true;
  return false;
}

// What a kernel of a part of attention is given, for predictions to start from: S, or P in the frame of m = 0
// with row sums that nothing is divided by.
std::vector<reference::GivenTensor> given_to_part(const Capture& c) {
  const Part part = c.arithmetic.part;
  if (part != Part::kFromScores && part != Part::kFromRawScores && part != Part::kFromProbs)
    return {};
  const Tensor t = part == Part::kFromProbs ? Tensor::kP : Tensor::kS;
  std::vector<reference::GivenTensor> all = {
      {t, dense_reference(c.problem, c.geometry, c.arithmetic, {c.q.data(), c.k.data(), c.v.data()},
                          t, 0)}};
  if (t == Tensor::kS) return all;
  const auto tiles = static_cast<std::size_t>(num_kv_tiles(c.problem, c.geometry));
  const auto rows = static_cast<std::size_t>(rows_of(c.problem));
  std::vector<float> l(rows * tiles, 0.0f);
  for (std::size_t row = 0; row < rows; ++row) l[row * tiles] = 1.0f;
  all.push_back({Tensor::kM, std::vector<float>(rows * tiles, 0.0f)});
  all.push_back({Tensor::kL, std::move(l)});
  return all;
}

}  // namespace

Cuts make_cuts(const Capture& capture, const std::vector<Tensor>& given,
               const DiagnoseOptions& options) {
  std::vector<reference::GivenTensor> tensors = given_to_part(capture);
  for (const Tensor t : given) {
    const TensorData& data = capture[t];
    reference::GivenTensor tensor{t, {}};
    tensor.values.reserve(static_cast<std::size_t>(data.size()));
    for (std::int64_t i = 0; i < data.size(); ++i)
      tensor.values.push_back(static_cast<float>(data.at(i)));
    tensors.push_back(std::move(tensor));
  }
  Cuts cuts;
  cuts.emplace_back(capture.problem, capture.geometry, capture.arithmetic,
                    reference::Inputs{capture.q.data(), capture.k.data(), capture.v.data()},
                    options.extras, std::move(tensors));
  for (const Geometry& geometry : options.geometries)
    cuts.push_back(cuts.front().with_geometry(geometry));
  return cuts;
}

Comparison compare(const Capture& capture, const DiagnoseOptions& options) {
  const auto empty = [](const auto& tensor) { return !tensor.has_value(); };
  if (std::all_of(capture.tensors.begin(), capture.tensors.end(), empty))
    throw Error("There is nothing to diagnose: neither o nor a stage tensor was recorded.");
  if (has_extras(options)) return {};
  return compare_with_reference(capture, options.tolerance, options.threads);
}

bool has_extras(const DiagnoseOptions& options) {
  return !options.extras.bias.empty() || options.extras.softcap != 0;
}

std::vector<Subject> subjects(const Capture& capture, const Comparison& comparison,
                              const DiagnoseOptions& options) {
  const auto wrong = [&](Stage stage) {
    return std::any_of(
        comparison.tensors.begin(), comparison.tensors.end(),
        [&](const TensorComparison& t) { return stage_of(t.tensor) == stage && t.mismatched > 0; });
  };
  std::vector<Subject> all;
  if (has_extras(options)) {
    all.push_back({Stage::kReduce, {}, {}, {}});
    for (const Tensor t : {Tensor::kLse, Tensor::kO})
      if (capture.has(t)) all.back().tensors.push_back(t);
    return all;
  }
  std::vector<Stage> exonerated;
  for (int s = 0; s < kNumStages; ++s) {
    const auto stage = static_cast<Stage>(s);
    const bool last = stage == Stage::kReduce;
    Subject subject{stage, recorded_of(capture, stage, last), whole_inputs(capture, stage),
                    exonerated};
    if (subject.tensors.empty()) continue;
    const bool first = all.empty();
    if (first) {
      // Where everything before it is right, q, k and v are what o and lse come from.
      if (last) subject.given.clear();
    } else if (last && all.back().stage != Stage::kQk) {
      continue;  // m, l and partial_o are not right, and are no inputs of predictions
    }
    if (first ? wrong(stage)
              : !subject.given.empty() && wrong_by_itself(capture, subject, options)) {
      all.push_back(std::move(subject));
    } else if (first) {
      const bool complete = std::all_of(kTensors.begin(), kTensors.end(), [&](const TensorInfo& t) {
        return t.stage != stage || capture.has(t.id);
      });
      if (complete) exonerated.push_back(stage);
    }
  }
  if (!all.empty() && all.back().stage != Stage::kReduce)
    for (const Tensor t : {Tensor::kLse, Tensor::kO})
      if (capture.has(t)) all.back().tensors.push_back(t);
  return all;
}

}  // namespace attn_diag::matching

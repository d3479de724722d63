#include "harness/compare/looser_declaration.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/capture/capture_fields.h"

namespace attn_diag {
namespace {

struct Looser {
  const char* what;    // "holds S in {}"
  const char* fields;  // of the declaration
  void (*apply)(Arithmetic&, DType);
  bool of_splits;
};

// One rounding each, then the pairs that go together.
constexpr Looser kLooser[] = {
    {"rounds P to {}", ".p_in_input_type = true", [](Arithmetic& a, DType t) { a.probs = t; },
     false},
    {"holds S in {}", ".s_in_input_type = true", [](Arithmetic& a, DType t) { a.scores = t; },
     false},
    {"rounds q * softmax_scale to {}", ".q_prescaled = true",
     [](Arithmetic& a, DType t) { a.scale_applied_to_q = true, a.scaled_q = t; }, false},
    {"stores the partial o of its splits in {}", ".partial_in_input_type = true",
     [](Arithmetic& a, DType t) { a.partial = t; }, true},
    {"holds S and P in {}", ".s_in_input_type = true, .p_in_input_type = true",
     [](Arithmetic& a, DType t) { a.scores = a.probs = t; }, false},
    {"stores the partial o, m and l of its splits in {}",
     ".partial_in_input_type = true, .partial_stats_in_input_type = true",
     [](Arithmetic& a, DType t) { a.partial = a.partial_stats = t; }, true}};

// Rounding to 16 bits errs at most 2^16 times as much as rounding to fp32.
constexpr double kLargestRatio = 65536;

bool may_be_rounding(const Comparison& comparison) {
  return std::all_of(
      comparison.tensors.begin(), comparison.tensors.end(),
      [](const TensorComparison& t) { return t.max_err_over_bound < kLargestRatio; });
}

bool has_nan(const Comparison& comparison) {
  return std::any_of(comparison.tensors.begin(), comparison.tensors.end(),
                     [](const TensorComparison& t) { return t.nan_actual > 0; });
}

}  // namespace

std::string looser_declaration(const Capture& capture, const Comparison& comparison,
                               const Tolerance& tolerance, int threads) {
  const DType input = capture.problem.dtype;
  const bool narrow = input == DType::kFp16 || input == DType::kBf16;
  // What a part is given follows from its declaration.
  if (capture.arithmetic.part != Part::kAttention) return "";
  if (!tolerance.use_bound || comparison.answer() != Answer::kDiverges || has_nan(comparison))
    return "";
  Capture other = capture;
  if (other.problem.softmax_scale != 1) {
    other.problem.softmax_scale = 1;
    if (compare_with_reference(other, tolerance, threads).agrees())
      return "Every cell is that of a kernel that takes q multiplied by the softmax scale already: "
             "if yours does, declare .any_scale = true and run it with --softmax-scale 1; if it "
             "does "
             "not, it forgets the scale.";
    other.problem.softmax_scale = capture.problem.softmax_scale;
  }
  if (!narrow || !may_be_rounding(comparison)) return "";
  for (const Looser& looser : kLooser) {
    if (looser.of_splits && !capture.geometry.has_split_merge) continue;
    other.arithmetic = capture.arithmetic;
    looser.apply(other.arithmetic, input);
    if (!compare_with_reference(other, tolerance, threads).agrees()) continue;
    return fmt::format(
        "Every cell is within the bound of a kernel that {}: if yours does, declare {}; if it does "
        "not, it is a mistake of that size.",
        fmt::format(fmt::runtime(looser.what), text(input)), looser.fields);
  }
  return "";
}

}  // namespace attn_diag

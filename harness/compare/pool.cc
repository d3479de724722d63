#include "harness/compare/pool.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "attn_diag/harness/inputs.h"

namespace attn_diag {
namespace {

// A dump's header alone has no inputs.
std::string why_unjudged(const Capture& capture) {
  for (const SharedBytes* input : {&capture.q, &capture.k, &capture.v})
    if (has_nonfinite(*input, capture.problem.dtype))
      return "NaN or infinity in q, k or v reaches them";
  const bool inputs = !capture.q.empty();
  return fmt::format(
      "{}overflow is possible, or scores are so large that their rounding alone may change any "
      "weight",
      inputs ? "" : "NaN or infinity in what they come from, or ");
}

constexpr const char* kNotAsked = "they are not of the rows that were asked for";
constexpr const char* kTooSmall = "their weights are too small for o's type";

}  // namespace

AccumulatorPool::AccumulatorPool(const Capture& actual) : x_capture(actual) {
  for (const std::optional<TensorData>& data : actual.tensors)
    if (data) x_work.push_back(std::make_unique<TensorWork>(*data, actual.geometry.tile));
}

AccumulatorPool::Set& AccumulatorPool::borrow() {
  const std::lock_guard lock(x_mutex);
  if (x_idle.empty()) {
    auto set = std::make_unique<Set>();
    for (const auto& w : x_work) set->emplace_back(w->grid, w->picture, w->actual.dtype);
    x_sets.push_back(std::move(set));
    return *x_sets.back();
  }
  Set* set = x_idle.back();
  x_idle.pop_back();
  return *set;
}

void AccumulatorPool::give_back(Set& set) {
  const std::lock_guard lock(x_mutex);
  x_idle.push_back(&set);
}

Comparison AccumulatorPool::finish(const Tolerance& tolerance, std::optional<std::int64_t> asked) {
  Comparison comparison;
  bool said = false;
  for (const auto& set : x_sets)
    for (CellAccumulator& part : *set) part.finish();
  for (std::size_t t = 0; t < x_work.size(); ++t) {
    std::vector<const CellAccumulator*> parts;
    for (const auto& set : x_sets) parts.push_back(&(*set)[t]);
    comparison.tensors.push_back(merge(x_work[t]->grid, std::move(x_work[t]->picture), parts));
    TensorComparison& merged = comparison.tensors.back();
    merged.by_bound = tolerance.use_bound;
    const std::int64_t wanted =
        asked ? *asked * x_work[t]->grid.row_cells : merged.compared + merged.unjudged;
    const std::int64_t unjudged = wanted - merged.compared;
    if (unjudged == 0) continue;
    const bool reconstructed = !x_work[t]->actual.uncertainty.empty();
    if (comparison.unjudged_because.empty() && !reconstructed)
      comparison.unjudged_because = why_unjudged(x_capture);
    // The reason once.
    const std::string because = reconstructed ? std::string(", having no bound: ") + kTooSmall
                                : std::exchange(said, true)
                                    ? ""
                                    : ", having no bound: " + comparison.unjudged_because;
    comparison.notes.push_back(fmt::format("{} of {} elements of {} are not judged{}.", unjudged,
                                           wanted, name(merged.tensor), because));
  }
  if (comparison.unjudged_because.empty() && comparison.unjudged() > 0)
    comparison.unjudged_because = asked ? kNotAsked : kTooSmall;
  return comparison;
}

}  // namespace attn_diag

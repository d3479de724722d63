#include "harness/compare_pool.h"

#include <fmt/format.h>

#include <utility>

namespace attn_diag {

AccumulatorPool::AccumulatorPool(const Capture& actual) {
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

Comparison AccumulatorPool::finish() {
  Comparison comparison;
  for (const auto& set : x_sets)
    for (CellAccumulator& part : *set) part.finish();
  for (std::size_t t = 0; t < x_work.size(); ++t) {
    std::vector<const CellAccumulator*> parts;
    for (const auto& set : x_sets) parts.push_back(&(*set)[t]);
    comparison.tensors.push_back(merge(x_work[t]->grid, std::move(x_work[t]->picture), parts));
    const TensorComparison& merged = comparison.tensors.back();
    if (merged.unjudged > 0) {
      comparison.notes.push_back(fmt::format(
          "{} elements of {} are not judged: overflow, or NaN or infinity in what they come from, "
          "leaves them without a rounding bound.",
          merged.unjudged, name(merged.tensor)));
    }
  }
  return comparison;
}

}  // namespace attn_diag

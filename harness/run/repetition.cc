#include "harness/run/repetition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "harness/run/run_memory.h"

namespace attn_diag {
namespace {

std::array<std::int64_t, 5> index_of(const TensorData& data, std::int64_t cell) {
  std::array<std::int64_t, 5> index{};
  for (std::size_t axis = data.shape.size(); axis-- > 0;) {
    index[axis] = data.origin[axis] + cell % data.shape[axis];
    cell /= data.shape[axis];
  }
  return index;
}

// Which NaN it is depends on the order of operands, and means nothing.
bool both_nan(const TensorData& a, const TensorData& b, std::int64_t cell) {
  return std::isnan(a.at(cell)) && std::isnan(b.at(cell));
}

void compare(const TensorData& a, const TensorData& b, bool all, Repetition& out) {
  if (a.bytes == b.bytes) return;
  const std::size_t size = size_of(a.dtype);
  std::int64_t& differing = out.differing[static_cast<std::size_t>(a.id)];
  for (std::int64_t cell = 0; cell < a.size(); ++cell) {
    const std::size_t at = static_cast<std::size_t>(cell) * size;
    const std::byte *const x = a.bytes.data() + at, *const y = b.bytes.data() + at;
    if (std::memcmp(x, y, size) == 0) continue;
    if (is_poison(x, a.dtype) ? !all : both_nan(a, b, cell) && !is_poison(y, b.dtype)) continue;
    ++differing;
    if (!out.first) out.first = {a.id, index_of(a, cell), a.at(cell), b.at(cell)};
  }
}

}  // namespace

void add_repetition(Capture& capture, Capture second) {
  ++capture.repetition.runs;
  if (capture.input_writes.empty()) capture.input_writes = second.input_writes;
  for (const TensorInfo& tensor : kTensors) {
    if (capture.has(tensor.id))
      compare(capture[tensor.id], second[tensor.id], true, capture.repetition);
    const auto at = static_cast<std::size_t>(tensor.id);
    Coverage& mine = capture.coverage[at];
    const Coverage& theirs = second.coverage[at];
    if (mine.never == 0) {
      mine.never = theirs.never;
      mine.first_never = theirs.first_never;
    }
    if (mine.repeatedly == 0) {
      mine.repeatedly = theirs.repeatedly;
      mine.first_repeated = theirs.first_repeated;
    }
  }
  if (capture.repetition.moved())
    capture.repetition.second = std::make_shared<const Capture>(std::move(second));
}

bool near_each_other(const Capture& one, const Capture& other, const Tolerance& tolerance) {
  Tolerance of_two = tolerance;  // with bounds, compare_captures doubles them itself
  of_two.atol *= 2;
  of_two.rtol *= 2;
  const Comparison comparison = compare_captures(other, one, of_two);
  return std::any_of(comparison.tensors.begin(), comparison.tensors.end(),
                     [](const TensorComparison& t) { return t.compared > 0; }) &&
         std::all_of(comparison.tensors.begin(), comparison.tensors.end(),
                     [](const TensorComparison& t) { return t.mismatched == 0; });
}

bool every_run_agrees(const Capture& capture, const Comparison& first, const Tolerance& tolerance,
                      int threads) {
  const Capture* second = capture.repetition.second.get();
  return first.agrees() &&
         (second == nullptr || compare_with_reference(*second, tolerance, threads).agrees());
}

Repetition moved_outputs(const Capture& first, const Capture& second, bool all) {
  Repetition moved;
  for (const Tensor t : outputs_of(first.arithmetic.part))
    if (first.has(t) && second.has(t)) compare(first[t], second[t], all, moved);
  return moved;
}

std::string cell_text(const Repetition::Cell& cell) {
  std::string index;
  for (int axis = 0; axis < info(cell.tensor).rank; ++axis)
    index += fmt::format("{}{}", axis == 0 ? "" : ", ", cell.index[static_cast<std::size_t>(axis)]);
  return fmt::format("{}({}): {:.9g} in one, {:.9g} in the other", name(cell.tensor), index,
                     cell.first, cell.second);
}

std::int64_t Repetition::moved_cells() const {
  return std::accumulate(differing.begin(), differing.end(), std::int64_t{0});
}

std::string repetition_text(const Repetition& repetition) {
  if (!repetition.first) return "";
  std::string cells;
  for (const TensorInfo& tensor : kTensors) {
    const std::int64_t n = repetition.differing[static_cast<std::size_t>(tensor.id)];
    if (n == 0) continue;
    cells += fmt::format("{}{} {} of {}", cells.empty() ? "" : ", ", n, n == 1 ? "cell" : "cells",
                         tensor.name);
  }
  return fmt::format("Two runs of the same case differ in {}; first {}.", cells,
                     cell_text(*repetition.first));
}

}  // namespace attn_diag

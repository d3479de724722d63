#include "harness/repetition.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "harness/run_memory.h"

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

void compare(const TensorData& a, const TensorData& b, bool all, Repetition& out) {
  if (a.bytes == b.bytes) return;
  const std::size_t size = size_of(a.dtype);
  std::int64_t& differing = out.differing[static_cast<std::size_t>(a.id)];
  for (std::int64_t cell = 0; cell < a.size(); ++cell) {
    const std::size_t at = static_cast<std::size_t>(cell) * size;
    if (std::memcmp(a.bytes.data() + at, b.bytes.data() + at, size) == 0) continue;
    if (!all && is_poison(a.bytes.data() + at, a.dtype)) continue;
    ++differing;
    if (!out.first) out.first = {a.id, index_of(a, cell), a.at(cell), b.at(cell)};
  }
}

}  // namespace

void add_repetition(Capture& capture, Capture second) {
  ++capture.repetition.runs;
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

bool every_run_agrees(const Capture& capture, const Comparison& first, const Tolerance& tolerance,
                      int threads) {
  const Capture* second = capture.repetition.second.get();
  return first.agrees() &&
         (second == nullptr || compare_with_reference(*second, tolerance, threads).agrees());
}

Repetition moved_outputs(const Capture& first, const Capture& second, bool all) {
  Repetition moved;
  for (const Tensor t : {Tensor::kO, Tensor::kLse})
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

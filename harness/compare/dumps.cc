#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/error.h"
#include "harness/base/parallel_for.h"
#include "harness/capture/consistency.h"
#include "harness/capture/oracle.h"
#include "harness/capture/reference_rows.h"
#include "harness/compare/judgement.h"
#include "harness/compare/pool.h"
#include "harness/dump/cell_reader.h"
#include "harness/dump/dump_layout.h"

namespace attn_diag {
namespace {

constexpr std::int64_t kSlabBytes = 1 << 20;

// A slab of both sides, and of the bound where there is one.
struct Slabs {
  CellSlab actual, expected, bound;
};

// Slabs that threads borrow: no more are made than there are threads.
class SlabPool {
 public:
  std::unique_ptr<Slabs> borrow() {
    const std::lock_guard lock(x_mutex);
    if (x_idle.empty()) return std::make_unique<Slabs>();
    std::unique_ptr<Slabs> slabs = std::move(x_idle.back());
    x_idle.pop_back();
    return slabs;
  }
  void give_back(std::unique_ptr<Slabs> slabs) {
    const std::lock_guard lock(x_mutex);
    x_idle.push_back(std::move(slabs));
  }

 private:
  std::mutex x_mutex;
  std::vector<std::unique_ptr<Slabs>> x_idle;
};

struct TensorReaders {
  TensorReaders(const DumpFile& actual_file, const DumpFile& expected_file, Tensor t,
                const std::vector<std::int64_t>& shape)
      : actual(actual_file, tensor_path(kStagesGroup, t), shape),
        expected(expected_file, tensor_path(kStagesGroup, t), shape) {}

  std::int64_t slab_cells() const {
    return kSlabBytes / static_cast<std::int64_t>(size_of(actual.dtype()));
  }

  // Calls judge(at, n, actual, expected) for the slabs of [at, at + n).
  template <class Judge>
  void for_each_slab(std::int64_t at, std::int64_t n, Slabs& slabs, const Judge& judge) const {
    for (const std::int64_t end = at + n; at < end;) {
      const std::int64_t cells = std::min(end - at, slab_cells());
      judge(at, cells, TypedCells{actual.read(at, cells, slabs.actual), actual.dtype()},
            TypedCells{expected.read(at, cells, slabs.expected), expected.dtype()});
      at += cells;
    }
  }

  CellReader actual, expected;
};

// One comparison of two open files.
class DumpComparer {
 public:
  DumpComparer(const DumpFile& actual, const DumpFile& expected, const Tolerance& tolerance)
      : x_actual(actual), x_expected(expected), x_tolerance(tolerance), x_pool(actual.header()) {}

  Comparison compare() {
    if (!x_tolerance.use_bound || bound_file() != nullptr)
      for (std::size_t i = 0; i < x_pool.work().size(); ++i) compare_tensor(i);
    else
      compare_under_computed_bounds();
    Comparison comparison = x_pool.finish(x_tolerance);
    note_inputs(comparison);
    return comparison;
  }

 private:
  // The file whose /bound is used, if one has it for every tensor.
  const DumpFile* bound_file() const {
    for (const DumpFile* file : {&x_expected, &x_actual}) {
      const auto has_bound = [&](const std::unique_ptr<TensorWork>& work) {
        return file->has(tensor_path(kBoundGroup, work->grid.id));
      };
      if (std::all_of(x_pool.work().begin(), x_pool.work().end(), has_bound)) return file;
    }
    return nullptr;
  }

  void compare_tensor(std::size_t i) {
    const CellGrid& grid = x_pool.work()[i]->grid;
    const TensorReaders readers(x_actual, x_expected, grid.id, grid.shape);
    std::optional<CellReader> bound;
    if (x_tolerance.use_bound) {
      bound.emplace(*bound_file(), tensor_path(kBoundGroup, grid.id), grid.shape);
      if (bound->dtype() != DType::kFp64)
        throw Error(fmt::format("Dataset {} is not of 64-bit floats. Write the dump again.",
                                bound->dataset()));
    }
    const Limits limits(x_tolerance);
    const std::int64_t slab = readers.slab_cells();
    parallel_for((grid.size() + slab - 1) / slab, 0, [&](std::int64_t s) {
      AccumulatorPool::Set& set = x_pool.borrow();
      std::unique_ptr<Slabs> slabs = x_slabs.borrow();
      const std::int64_t first = s * slab;
      const auto judge = [&](std::int64_t at, std::int64_t n, TypedCells a, TypedCells e) {
        const void* limit = bound ? bound->read(at, n, slabs->bound) : nullptr;
        limits.add(set[i], at, n, a, e, static_cast<const double*>(limit));
      };
      readers.for_each_slab(first, std::min(slab, grid.size() - first), *slabs, judge);
      x_slabs.give_back(std::move(slabs));
      x_pool.give_back(set);
    });
  }

  void compare_under_computed_bounds() {
    Capture c = x_expected.header();
    x_expected.read_inputs(c);
    std::vector<std::unique_ptr<TensorReaders>> readers;
    for (const auto& work : x_pool.work())
      readers.push_back(
          std::make_unique<TensorReaders>(x_actual, x_expected, work->grid.id, work->grid.shape));
    const Limits limits(x_tolerance);
    const auto visit = [&](const reference::RowBlock& block) {
      AccumulatorPool::Set& set = x_pool.borrow();
      std::unique_ptr<Slabs> slabs = x_slabs.borrow();
      for (std::size_t i = 0; i < set.size(); ++i) {
        const CellGrid& grid = x_pool.work()[i]->grid;
        const double* bound = block.bound[static_cast<std::size_t>(grid.id)];
        if (bound == nullptr) continue;
        const std::int64_t first = first_row(c.region, block) * grid.row_cells;
        const auto judge = [&](std::int64_t at, std::int64_t n, TypedCells a, TypedCells e) {
          limits.add(set[i], at, n, a, e, bound + (at - first));
        };
        readers[i]->for_each_slab(first, block.rows * grid.row_cells, *slabs, judge);
      }
      x_slabs.give_back(std::move(slabs));
      x_pool.give_back(set);
    };
    for_each_row_block(c, reference_options(c, 0, true), visit);
  }

  // Runs on other data do not agree for reasons that are not the kernel's: worth saying.
  void note_inputs(Comparison& comparison) {
    std::unique_ptr<Slabs> slabs = x_slabs.borrow();
    std::string different;
    for (const InputLayout& layout : input_layouts(x_actual.header().problem)) {
      const std::string path = fmt::format("/inputs/{}", layout.name);
      const std::vector<std::int64_t> shape(layout.shape.begin(), layout.shape.end());
      const CellReader a(x_actual, path, shape), e(x_expected, path, shape);
      bool same = a.dtype() == e.dtype();
      const std::int64_t cells = shape[0] * shape[1] * shape[2] * shape[3];
      const std::int64_t slab = kSlabBytes / static_cast<std::int64_t>(size_of(a.dtype()));
      for (std::int64_t at = 0; same && at < cells; at += slab) {
        const std::int64_t n = std::min(slab, cells - at);
        same = std::memcmp(a.read(at, n, slabs->actual), e.read(at, n, slabs->expected),
                           static_cast<std::size_t>(n) * size_of(a.dtype())) == 0;
      }
      if (!same) different += fmt::format("{}{}", different.empty() ? "" : ", ", layout.name);
    }
    if (!different.empty())
      comparison.notes.push_back(
          fmt::format("the two runs had different inputs: {} differ", different));
  }

  const DumpFile& x_actual;
  const DumpFile& x_expected;
  const Tolerance& x_tolerance;
  AccumulatorPool x_pool;
  SlabPool x_slabs;
};

}  // namespace

namespace {

bool has_uncertainty(const std::string& path) {
  return DumpFile(path).has(std::string(kUncertaintyGroup));
}

}  // namespace

Comparison compare_dumps(const std::string& actual_path, const std::string& expected_path,
                         const Tolerance& tolerance) {
  // Reconstructed tensors are of small problems: there is no need to read them in pieces.
  if (has_uncertainty(actual_path) || has_uncertainty(expected_path))
    return compare_captures(read_dump(actual_path), read_dump(expected_path), tolerance);
  const DumpFile actual(actual_path), expected(expected_path);
  check_comparable(actual.header(), expected.header(), actual_path, expected_path);
  try {
    return DumpComparer(actual, expected, tolerance).compare();
  } catch (const Error& e) {
    throw Error(
        fmt::format("{} and {} could not be compared. {}", actual_path, expected_path, e.what()));
  }
}

}  // namespace attn_diag

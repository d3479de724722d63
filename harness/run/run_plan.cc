#include "harness/run/run_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/harness/check_problem.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "harness/base/memory.h"
#include "harness/library/support.h"
#include "harness/run/run_memory.h"

namespace attn_diag {
namespace {

// The exposed and defined ones of `wanted` up to the gate's last stage.
std::uint32_t reachable(std::uint32_t wanted, const Kernel& kernel, const Geometry& geometry,
                        const RunOptions& options) {
  if (!options.taps) return 0;
  std::uint32_t mask = 0;
  for (const TensorInfo& tensor : kTensors) {
    const auto at = static_cast<std::size_t>(tensor.id);
    if ((wanted & tensor_bit(tensor.id)) != 0 && !is_output(tensor.id, kernel.info().part) &&
        tensor.stage <= last_stage(options.gate) && defined_for(tensor.id, geometry) &&
        kernel.info().exposure[at].exposed)
      mask |= tensor_bit(tensor.id);
  }
  return mask;
}

std::string shape_text(TileShape t) { return fmt::format("{}x{}", t.block_m, t.block_n); }

}  // namespace

Geometry plan_geometry(const Kernel& kernel, const Problem& problem, const RunOptions& options) {
  check_problem(problem);
  const KernelInfo& kernel_info = kernel.info();
  TileShape tile = options.tile;
  if (tile.block_m == 0 && tile.block_n == 0 && kernel_info.num_tiles > 0)
    tile = kernel_info.default_tile != nullptr ? kernel_info.default_tile(problem)
                                               : kernel_info.tiles[0];
  std::vector<std::string> compiled;
  for (std::int32_t i = 0; i < kernel_info.num_tiles; ++i)
    compiled.push_back(shape_text(kernel_info.tiles[i]));
  if (std::find(compiled.begin(), compiled.end(), shape_text(tile)) == compiled.end()) {
    throw Error(fmt::format("{} has no tile shape {}. Compiled are: {}.", kernel.spec(),
                            shape_text(tile), fmt::join(compiled, ", ")));
  }
  if (options.num_splits < 0)
    throw Error(fmt::format("num_splits must be at least 1, but is {}.", options.num_splits));
  if (options.num_splits > 1 && !kernel_info.takes_num_splits) {
    throw Error(fmt::format("{} does not split the keys: leave out --num-splits (it is {}).",
                            kernel.spec(), options.num_splits));
  }
  if (kernel_info.support != nullptr) {
    const std::string why = why_not_supported(*kernel_info.support, problem);
    if (!why.empty())
      throw Error(fmt::format("{} does not support this problem: {}", kernel.spec(), why));
  }
  Geometry geometry;
  std::array<char, 512> message{};
  const Status status = kernel_info.plan(problem, tile, options.num_splits, &geometry,
                                         message.data(), message.size());
  if (status != Status::kOk) {
    throw Error(fmt::format("{} does not support this problem: {}", kernel.spec(),
                            message[0] != 0 ? message.data() : "it does not say why."));
  }
  try {
    check_geometry(geometry, problem);
  } catch (const Error& e) {
    throw Error(fmt::format("{} plans what cannot be: {}", kernel.spec(), e.what()));
  }
  return geometry;
}

Arithmetic declared_arithmetic(const Kernel& kernel, const Problem& problem,
                               const Geometry& geometry) {
  Arithmetic arithmetic = kernel.info().arithmetic(problem, geometry);
  arithmetic.part = kernel.info().part;
  try {
    check_arithmetic(arithmetic);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", kernel.spec(), e.what()));
  }
  return arithmetic;
}

Region resolve_region(const Region& region, const Problem& problem) {
  const Region all = whole(problem);
  constexpr std::array<std::string_view, 3> axes = {"batch", "head", "query"};
  Region out = region;
  for (std::size_t i = 0; i < 3; ++i) {
    if (out.extent[i] == 0) {
      out.origin[i] = 0;
      out.extent[i] = all.extent[i];
    }
    if (out.origin[i] < 0 || out.extent[i] < 0 || out.origin[i] + out.extent[i] > all.extent[i]) {
      throw Error(fmt::format("The region asks for {} {}..{}, but there are only 0..{}.", axes[i],
                              out.origin[i], out.origin[i] + out.extent[i] - 1, all.extent[i] - 1));
    }
  }
  return out;
}

Capture case_of(const Experiment& experiment) {
  const auto& [kernel, problem, inputs, run, tolerance, oracle] = experiment;
  Capture out;
  out.problem = problem;
  out.geometry = plan_geometry(kernel, problem, run);
  out.arithmetic = declared_arithmetic(kernel, problem, out.geometry);
  out.region = resolve_region(run.region, problem);
  out.q = inputs.q;
  out.k = inputs.k;
  out.v = inputs.v;
  out.oracle = oracle;
  return out;
}

bool defined_for(Tensor t, const Geometry& geometry) {
  return geometry.has_split_merge || (t != Tensor::kMergedL && t != Tensor::kMergedO);
}

std::uint32_t recorded_tensors(const Kernel& kernel, const Geometry& geometry,
                               const RunOptions& options) {
  return reachable(~0u, kernel, geometry, options);
}

std::uint32_t replaced_tensors(const Kernel& kernel, const Geometry& geometry,
                               const RunOptions& options) {
  std::uint32_t wanted = options.replace | (options.isolate ? kStageInputs : 0);
  for (const TensorInfo& tensor : kTensors)
    if (kernel.info().exposure[static_cast<std::size_t>(tensor.id)].recorded_only)
      wanted &= ~tensor_bit(tensor.id);
  return reachable(wanted, kernel, geometry, options);
}

double cells_in_region(Tensor t, const Problem& problem, const Geometry& geometry,
                       const Region& region) {
  double cells = 1;
  const TensorInfo& tensor = info(t);
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.rank); ++i) {
    cells *= static_cast<double>(i < 3 ? region.extent[i]
                                       : axis_extent(tensor.axes[i], problem, geometry));
  }
  return cells;
}

double device_bytes(const Kernel& kernel, const Problem& problem, const Geometry& geometry,
                    const RunOptions& options) {
  const Region region = resolve_region(options.region, problem);
  const std::uint32_t recorded = recorded_tensors(kernel, geometry, options);
  const std::uint32_t replaced = replaced_tensors(kernel, geometry, options);
  const double zones = 2.0 * static_cast<double>(guard_bytes(problem, geometry));
  double bytes = static_cast<double>(kernel.info().workspace_bytes(problem, geometry)) + 6 * zones;
  for (const TensorInfo& tensor : kTensors) {
    const double cells = cells_in_region(tensor.id, problem, geometry, region);
    const bool counted =
        is_output(tensor.id, kernel.info().part) && last_stage(options.gate) == Stage::kReduce;
    if ((recorded & tensor_bit(tensor.id)) != 0) bytes += cells * (sizeof(float) + 1) + 2 * zones;
    if (counted) bytes += cells + zones;
    if ((replaced & tensor_bit(tensor.id)) != 0) bytes += cells * sizeof(float) + zones;
  }
  if (kernel.info().part != Part::kAttention)
    bytes += static_cast<double>(between_cells(problem)) * sizeof(float) + zones;
  const auto element = static_cast<double>(size_of(problem.dtype));
  const double kv_rows = static_cast<double>(problem.batch) * problem.kv_heads * problem.seqlen_k;
  return bytes +
         static_cast<double>(rows_of(problem)) *
             ((problem.head_dim + problem.head_dim_v) * element + sizeof(float)) +
         kv_rows * (problem.head_dim + problem.head_dim_v) * element;
}

double run_bytes(const Kernel& kernel, const Problem& problem, const Geometry& geometry,
                 const RunOptions& options) {
  const Region region = resolve_region(options.region, problem);
  const std::uint32_t recorded = recorded_tensors(kernel, geometry, options);
  const std::uint32_t replaced = replaced_tensors(kernel, geometry, options);
  // On a GPU a case is run twice, and both captures are there to compare.
  const double captures = std::string_view(kernel.build().backend) == "cuda" ? 2 : 1;
  double bytes = static_cast<double>(kernel.info().workspace_bytes(problem, geometry));
  for (const TensorInfo& tensor : kTensors) {
    const double cells = cells_in_region(tensor.id, problem, geometry, region);
    const double value = is_output(tensor.id, kernel.info().part) ? 0 : sizeof(float);
    if ((recorded & tensor_bit(tensor.id)) != 0) bytes += captures * cells * (value + 1);
    if ((replaced & tensor_bit(tensor.id)) != 0) bytes += cells * value;
  }
  // S or P: what is given, or the kernel's and the captures' copies.
  if (kernel.info().part != Part::kAttention)
    bytes += (1 + captures) * static_cast<double>(between_cells(problem)) * sizeof(float);
  const double rows = static_cast<double>(problem.batch) * problem.heads * problem.seqlen_q;
  const double o_row = problem.head_dim_v * static_cast<double>(size_of(problem.dtype));
  const double region_rows = static_cast<double>(region.extent[0] * region.extent[1]) *
                             static_cast<double>(region.extent[2]);
  // The kernel's outputs, and o and lse of the capture with their write counts.
  bytes += rows * (o_row + sizeof(float)) +
           captures * region_rows * (o_row + problem.head_dim_v + sizeof(float) + 1);
  const double kv_rows = static_cast<double>(problem.batch) * problem.kv_heads * problem.seqlen_k;
  // q, k, v: the caller's, the kernel's and the captures' copies.
  bytes += (2 + captures) * static_cast<double>(size_of(problem.dtype)) *
           (rows * problem.head_dim + kv_rows * (problem.head_dim + problem.head_dim_v));
  return bytes;
}

void check_memory(const Kernel& kernel, const Problem& problem, const Geometry& geometry,
                  const RunOptions& options) {
  const double needed = run_bytes(kernel, problem, geometry, options);
  const double limit = options.memory_limit > 0 ? static_cast<double>(options.memory_limit)
                                                : 0.75 * available_memory();
  if (limit <= 0 || needed <= limit) return;
  RunOptions production = options;
  production.taps = false;
  production.region = {};
  const double outputs = run_bytes(kernel, problem, geometry, production);
  throw Error(fmt::format(
      "Recording stages up to {} would take {}, but at most {} are to be used. Record fewer rows "
      "(--batch-index, --head, --query) or fewer stages (--stage), or choose a smaller problem "
      "(--batch, --heads, --seqlen).{}",
      name(last_stage(options.gate)), readable_bytes(needed), readable_bytes(limit),
      outputs <= limit ? fmt::format(" attn-diag run --query sample:64 takes {}: it judges o and "
                                     "lse of 64 queries of each head.",
                                     readable_bytes(outputs))
                       : ""));
}

}  // namespace attn_diag

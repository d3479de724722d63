#include "reference/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

#include "reference/mask.h"
#include "reference/product.h"

namespace attn_diag::reference {
namespace {

void require_plan(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument("reference: " + message);
}

void require_at_least(const char* what, std::int64_t value, std::int64_t least) {
  require_plan(value >= least, std::string(what) + " must be at least " + std::to_string(least) +
                                   ", found " + std::to_string(value));
}

void check_problem(const Problem& p) {
  require_at_least("batch", p.batch, 1);
  require_at_least("heads", p.heads, 1);
  require_at_least("kv_heads", p.kv_heads, 1);
  require_at_least("seqlen_q", p.seqlen_q, 1);
  require_at_least("seqlen_k", p.seqlen_k, 1);
  require_at_least("head_dim", p.head_dim, 1);
  require_at_least("head_dim_v", p.head_dim_v, 1);
  require_plan(p.heads % p.kv_heads == 0,
               "kv_heads must divide heads exactly, found heads = " + std::to_string(p.heads) +
                   ", kv_heads = " + std::to_string(p.kv_heads));
  require_plan(std::isfinite(p.softmax_scale),
               "softmax_scale must be finite, found " + std::to_string(p.softmax_scale));
  if (p.mask.kind == MaskKind::kWindow) {
    require_at_least("window_left", p.mask.window_left, 0);
    require_at_least("window_right", p.mask.window_right, 0);
  }
}

void check_geometry(const Problem& p, const Geometry& g) {
  require_at_least("block_m", g.tile.block_m, 1);
  require_at_least("block_n", g.tile.block_n, 1);
  require_at_least("num_splits", g.num_splits, 1);
  require_at_least("tiles_per_split", g.tiles_per_split, 1);
  const std::int64_t tiles = kv_tile_count(p, g);
  require_plan(std::int64_t{g.num_splits} * g.tiles_per_split >= tiles,
               "the splits must cover every KV tile: num_splits * tiles_per_split = " +
                   std::to_string(std::int64_t{g.num_splits} * g.tiles_per_split) +
                   ", but there are " + std::to_string(tiles) + " tiles");
  require_plan(g.num_splits == 1 || g.has_split_merge,
               "num_splits = " + std::to_string(g.num_splits) +
                   " needs has_split_merge: without a merge there is no output");
}

void resolve_range(const char* axis, std::int32_t size, std::int32_t& begin, std::int32_t& end) {
  if (end == -1) end = size;
  require_plan(begin >= 0 && begin <= end && end <= size,
               std::string(axis) + " range must lie within 0.." + std::to_string(size) +
                   ", found " + std::to_string(begin) + ".." + std::to_string(end));
}

void require_sample(const std::vector<std::int32_t>& queries, const Options& o) {
  for (std::size_t i = 0; i < queries.size(); ++i) {
    require_plan(queries[i] >= o.query_begin && queries[i] < o.query_end,
                 "a sampled query must lie within " + std::to_string(o.query_begin) + ".." +
                     std::to_string(o.query_end) + ", found " + std::to_string(queries[i]));
    require_plan(i == 0 || queries[i] > queries[i - 1],
                 "sampled queries must ascend, each once, found " + std::to_string(queries[i]));
  }
}

// The tensors of a block stay near a second-level cache of 2 MiB together. Long rows fit no cache: each block reads
// all of k and v, so that few rows at once cost most.
constexpr std::int64_t kCacheDoubles = (4 << 20) / sizeof(double);
constexpr std::int64_t kMostDoubles = (96 << 20) / sizeof(double);

std::int64_t doubles_per_row(const Problem& p, std::int64_t tiles, bool bounds) {
  const std::int64_t values = 2 * std::int64_t{p.seqlen_k} + 2 * tiles * p.head_dim_v + p.head_dim;
  return bounds ? 2 * values + p.seqlen_k : values;
}

// No more rows than it takes to keep all threads busy.
std::int32_t choose_rows(const Plan& plan) {
  const Problem& p = plan.problem;
  const std::int64_t per_row = doubles_per_row(p, plan.tiles, plan.options.bounds);
  const Options& o = plan.options;
  const std::int64_t wanted = std::int64_t{o.batch_end - o.batch_begin} *
                              (o.head_end - o.head_begin) * std::ssize(plan.queries);
  // A multiple of the rows that multiply() takes at once, if it can be.
  constexpr std::int64_t kStep = kRowsAtOnce, kMostRows = 48;
  const std::int64_t fair = std::max(kStep, wanted / (4 * o.threads));
  const std::int64_t rows = std::min({kCacheDoubles / per_row, fair, kMostRows});
  if (rows >= kStep) return static_cast<std::int32_t>(rows / kStep * kStep);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(kMostDoubles / per_row, 1, kStep));
}

}  // namespace

std::int64_t block_bytes(const Problem& problem, const Geometry& geometry) {
  const std::int64_t few =
      kRowsAtOnce * doubles_per_row(problem, kv_tile_count(problem, geometry), true);
  return std::clamp(few, kCacheDoubles, kMostDoubles) * static_cast<std::int64_t>(sizeof(double));
}

std::int64_t Plan::cells_per_row(Tensor t) const {
  const TensorInfo& tensor = info(t);
  std::int64_t cells = 1;
  for (int i = 3; i < tensor.rank; ++i) switch (tensor.axes[static_cast<std::size_t>(i)]) {
      case Axis::kKey:
        cells *= problem.seqlen_k;
        break;
      case Axis::kKvTile:
        cells *= tiles;
        break;
      case Axis::kSplit:
        cells *= splits;
        break;
      case Axis::kDim:
        cells *= problem.head_dim_v;
        break;
      case Axis::kBatch:
      case Axis::kHead:
      case Axis::kQuery:
        break;
    }
  return cells;
}

Plan make_plan(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic,
               const Inputs& inputs, const Options& options) {
  check_problem(problem);
  Options o = options;
  resolve_range("query", problem.seqlen_q, o.query_begin, o.query_end);
  std::vector<std::int32_t> all(static_cast<std::size_t>(o.query_end - o.query_begin));
  std::iota(all.begin(), all.end(), o.query_begin);
  return make_plan(problem, geometry, arithmetic, inputs, options, all);
}

Plan make_plan(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic,
               const Inputs& inputs, const Options& options,
               const std::vector<std::int32_t>& queries) {
  check_problem(problem);
  check_geometry(problem, geometry);
  require_plan(inputs.q != nullptr && inputs.k != nullptr && inputs.v != nullptr,
               "q, k and v must be given; found a null pointer");
  Plan plan;
  plan.problem = problem;
  plan.geometry = geometry;
  plan.arithmetic = arithmetic;
  plan.inputs = inputs;
  plan.options = options;
  Options& o = plan.options;
  resolve_range("batch", problem.batch, o.batch_begin, o.batch_end);
  resolve_range("head", problem.heads, o.head_begin, o.head_end);
  resolve_range("query", problem.seqlen_q, o.query_begin, o.query_end);
  require_sample(queries, o);
  plan.queries = queries;
  require_at_least("threads", o.threads, 0);
  if (o.threads == 0)
    o.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));

  plan.tiles = kv_tile_count(problem, geometry);
  plan.splits = geometry.num_splits;
  if (!geometry.has_split_merge)
    o.tensors &= ~(tensor_bit(Tensor::kMergedL) | tensor_bit(Tensor::kMergedO));
  for (const TensorInfo& tensor : kTensors) {
    if (!plan.wants(tensor.id) || tensor.stage == Stage::kQk) continue;
    plan.softmax = true;
    if (tensor.stage == Stage::kReduce) plan.reduce = true;
  }
  plan.pv = plan.wants(Tensor::kPartialO) || plan.wants(Tensor::kRunningO) ||
            plan.wants(Tensor::kMergedO) || plan.wants(Tensor::kO);
  plan.rows_per_block = choose_rows(plan);
  return plan;
}

}  // namespace attn_diag::reference

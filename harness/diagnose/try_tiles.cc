// Making the trials: other tiles, other splits, or the same sequences from a later position on.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/tile_trials.h"
#include "attn_diag/reference/reference.h"
#include "harness/run/run_plan.h"

namespace attn_diag {
namespace {

// Positions [shift, seqlen) of one operand.
std::vector<std::byte> without_first(const std::vector<std::byte>& from, const Problem& p,
                                     std::int32_t heads, std::int32_t seqlen, std::int32_t dim,
                                     std::int32_t shift) {
  const Strides old_strides = dense_strides(p.layout, heads, seqlen, dim);
  const Strides new_strides = dense_strides(p.layout, heads, seqlen - shift, dim);
  const std::size_t element = size_of(p.dtype);
  std::vector<std::byte> out(static_cast<std::size_t>(p.batch) * static_cast<std::size_t>(heads) *
                             static_cast<std::size_t>(seqlen - shift) *
                             static_cast<std::size_t>(dim) * element);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t s = 0; s < seqlen - shift; ++s) {
        const std::int64_t to = b * new_strides.batch + h * new_strides.head + s * new_strides.seq;
        const std::int64_t at =
            b * old_strides.batch + h * old_strides.head + (s + shift) * old_strides.seq;
        std::memcpy(out.data() + static_cast<std::size_t>(to) * element,
                    from.data() + static_cast<std::size_t>(at) * element,
                    static_cast<std::size_t>(dim) * element);
      }
  return out;
}

class Trials {
 public:
  Trials(Experiment experiment, int most, const std::function<void(int, int)>& on_step)
      : x_experiment(std::move(experiment)),
        x_most(static_cast<std::size_t>(most)),
        x_on_step(on_step) {
    RunOptions& run = x_experiment.run;
    run.taps = false;
    run.isolate = false;
    run.replace = 0;
    run.region = {};
  }

  std::vector<TileTrial> make() {
    add(x_experiment, 0, 0);
    other_splits();
    other_tiles();
    if (info().num_tiles < 2) later_positions();
    return std::move(x_trials);
  }

 private:
  const KernelInfo& info() const { return x_experiment.kernel.info(); }
  bool full() const { return x_trials.size() >= x_most; }

  void other_tiles() {
    const Geometry first = x_trials.front().geometry;
    // Tiles that differ in one size alone say most.
    for (const bool one_size : {true, false}) {
      for (std::int32_t i = 0; i < info().num_tiles && !full(); ++i) {
        const TileShape tile = info().tiles[i];
        const int differs =
            (tile.block_m != first.tile.block_m) + (tile.block_n != first.tile.block_n);
        if (differs == 0 || (differs == 1) != one_size) continue;
        RunOptions run = x_experiment.run;
        run.tile = tile;
        if (info().takes_num_splits) run.num_splits = first.num_splits;
        try_add(x_experiment.with(run), 0, 0);
      }
    }
  }

  void other_splits() {
    if (!info().takes_num_splits) return;
    const Geometry first = x_trials.front().geometry;
    for (const int splits : {1, 2, 3}) {
      if (splits == first.num_splits || full()) continue;
      RunOptions run = x_experiment.run;
      run.tile = first.tile;
      run.num_splits = splits;
      try_add(x_experiment.with(run), 0, 0);
    }
  }

  // The mask goes by the difference of the two positions; only causal:top_left counts them from the
  // start.
  void later_positions() {
    const TileShape tile = x_trials.front().geometry.tile;
    const Mask& mask = x_experiment.problem.mask;
    const bool together =
        mask.kind == MaskKind::kCausal && mask.alignment == CausalAlignment::kTopLeft;
    for (const std::int32_t part : {2, 4}) {
      const std::int32_t m = tile.block_m / part + 1, n = tile.block_n / part + 1;
      if (together) {
        shift(m, m);
      } else {
        shift(m, 0);
        shift(0, n);
      }
    }
  }

  void shift(std::int32_t queries, std::int32_t keys) {
    const Problem& p = x_experiment.problem;
    if (full() || queries >= p.seqlen_q || keys >= p.seqlen_k) return;
    Problem later = p;
    later.seqlen_q -= queries;
    later.seqlen_k -= keys;
    const InputData& all = x_experiment.inputs;
    InputData inputs = all;
    inputs.q = without_first(all.q, p, p.heads, p.seqlen_q, p.head_dim, queries);
    inputs.k = without_first(all.k, p, p.kv_heads, p.seqlen_k, p.head_dim, keys);
    inputs.v = without_first(all.v, p, p.kv_heads, p.seqlen_k, p.head_dim_v, keys);
    Experiment shifted = x_experiment.with(later, std::move(inputs));
    shifted.run.tile = x_trials.front().geometry.tile;
    try_add(shifted, queries, keys);
  }

  void try_add(const Experiment& one, std::int32_t query_shift, std::int32_t key_shift) {
    try {
      add(one, query_shift, key_shift);
    } catch (const Error&) {
      // Not a case that the kernel takes.
    }
  }

  void add(const Experiment& one, std::int32_t query_shift, std::int32_t key_shift) {
    const Problem& problem = one.problem;
    if (x_on_step) x_on_step(static_cast<int>(x_trials.size()) + 1, static_cast<int>(x_most));
    const Capture capture = run_kernel(one);
    for (const TileTrial& made : x_trials) {
      if (made.query_shift == query_shift && made.key_shift == key_shift &&
          made.geometry.tile.block_m == capture.geometry.tile.block_m &&
          made.geometry.tile.block_n == capture.geometry.tile.block_n &&
          made.geometry.num_splits == capture.geometry.num_splits)
        return;
    }
    TileTrial trial;
    trial.problem = problem;
    trial.geometry = capture.geometry;
    trial.query_shift = query_shift;
    trial.key_shift = key_shift;
    trial.label = label(trial);
    trial.wrong.assign(static_cast<std::size_t>(problem.batch) * problem.heads * problem.seqlen_q,
                       0);
    const Comparison comparison = compare_with_reference(capture, one.tolerance, one.run.threads);
    for (const TensorComparison& tensor : comparison.tensors) {
      if (tensor.tensor != Tensor::kO) continue;
      for (const TensorComparison::WrongRow& row : tensor.wrong_rows)
        trial.wrong[(static_cast<std::size_t>(row.batch) * problem.heads + row.head) *
                        problem.seqlen_q +
                    row.query] = 1;
      trial.wrong_rows = static_cast<std::int64_t>(tensor.wrong_rows.size());
    }
    if (query_shift == 0 && key_shift == 0) trial.changed_rows = changed_rows(capture);
    x_trials.push_back(std::move(trial));
  }

  // Against the first trial; remembers o and its bounds of that.
  std::int64_t changed_rows(const Capture& capture) {
    reference::Options options;
    options.tensors = tensor_bit(Tensor::kO);
    options.threads = x_experiment.run.threads;
    std::vector<double> bound =
        reference::compute(capture.problem, capture.geometry, capture.arithmetic,
                           {capture.q.data(), capture.k.data(), capture.v.data()}, options)
            .bound[static_cast<std::size_t>(Tensor::kO)];
    const TensorData& o = capture[Tensor::kO];
    std::vector<double> value(bound.size());
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = o.at(static_cast<std::int64_t>(i));
    if (!x_first) {
      x_first = Output{std::move(value), std::move(bound)};
      return 0;
    }
    const auto dim = static_cast<std::size_t>(capture.problem.head_dim_v);
    std::int64_t rows = 0;
    for (std::size_t row = 0; row < value.size(); row += dim) {
      bool same = true;
      for (std::size_t i = row; i < row + dim; ++i) {
        const double was = x_first->value[i];
        const bool equal = value[i] == was || (std::isnan(value[i]) && std::isnan(was));
        same &= equal || std::fabs(value[i] - was) <= bound[i] + x_first->bound[i];
      }
      rows += !same;
    }
    return rows;
  }

  static std::string label(const TileTrial& trial) {
    const Geometry& g = trial.geometry;
    std::string text = fmt::format("{}x{} tiles", g.tile.block_m, g.tile.block_n);
    if (g.has_split_merge || g.num_splits > 1)
      text += fmt::format(", {} split{}", g.num_splits, g.num_splits == 1 ? "" : "s");
    if (trial.query_shift > 0 && trial.key_shift == trial.query_shift)
      return text + fmt::format(", without the first {} positions", trial.query_shift);
    if (trial.query_shift > 0)
      text += fmt::format(", without the first {} queries", trial.query_shift);
    if (trial.key_shift > 0) text += fmt::format(", without the first {} keys", trial.key_shift);
    return text;
  }

  struct Output {
    std::vector<double> value, bound;
  };

  Experiment x_experiment;
  std::size_t x_most;
  const std::function<void(int, int)>& x_on_step;
  std::optional<Output> x_first;
  std::vector<TileTrial> x_trials;
};

}  // namespace

TileFinding try_tiles(const Experiment& experiment, int most,
                      const std::function<void(int step, int steps)>& on_step) {
  return judge_tile_trials(Trials(experiment, most, on_step).make());
}

}  // namespace attn_diag

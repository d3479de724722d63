#include "harness/xray/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attn_diag/harness/plan.h"
#include "attn_diag/reference/reference.h"
#include "harness/capture/oracle.h"
#include "harness/capture/reference_rows.h"
#include "harness/run/run_memory.h"
#include "harness/run/run_plan.h"
#include "harness/xray/moves.h"

namespace attn_diag::xraying {
namespace {

// Half the smallest subnormal: what rounding can lose of a number near 0.
double tiny_of(DType type) {
  switch (type) {
    case DType::kFp16:
      return 0x1p-25;
    case DType::kBf16:
      return 0x1p-134;
    case DType::kFp32:
    case DType::kFp64:
      break;
  }
  return 0x1p-150;
}

// fp16 holds no weight below 2^-24, but c times a smaller one. A weight is at most 1, unless the kernel
// is wrong: there is room for that, and the factor is given up where it is not enough.
double one_of(DType output) { return output == DType::kFp16 ? 0x1p10 : 1.0; }

InputData one_hot(const Problem& p, const InputData& inputs, std::int64_t first, double one) {
  InputData out = inputs;
  const Strides strides = dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim_v);
  std::vector<std::byte> v(out.v.size());
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.kv_heads; ++h)
      for (std::int64_t d = 0; d < p.head_dim_v && first + d < p.seqlen_k; ++d)
        store_element(v.data(), p.dtype,
                      b * strides.batch + h * strides.head + (first + d) * strides.seq + d, one);
  out.v = std::move(v);
  return out;
}

class Reader {
 public:
  explicit Reader(const Experiment& experiment)
      : x_experiment(experiment), x_problem(experiment.problem) {
    const Problem& problem = x_problem;
    const auto rows = static_cast<std::size_t>(rows_of(problem));
    x_weights.value.resize(rows * static_cast<std::size_t>(problem.seqlen_k));
    x_weights.relative.resize(rows);
    const Geometry geometry = plan_geometry(experiment.kernel, problem, experiment.run);
    x_arithmetic = declared_arithmetic(experiment.kernel, problem, geometry);
    x_one = one_of(x_arithmetic.output);
  }

  // Keys [first, first + head_dim_v).
  void read(std::int64_t first) {
    double one = x_one;
    Capture capture = run_one_hot(first, one);
    if (one != 1.0 && overflows(capture)) {
      one = 1.0;
      capture = run_one_hot(first, one);
    }
    x_least_one = std::min(x_least_one, one);
    take(capture, first, one);
    bound(capture, first, one);
  }

  Weights finish() {
    // The output's share shrinks with what it was scaled by, that of P's own type does not.
    x_weights.absolute = tiny_of(x_arithmetic.output) / x_least_one + tiny_of(x_arithmetic.probs) +
                         tiny_of(x_arithmetic.partial);
    return std::move(x_weights);
  }

 private:
  Capture run_one_hot(std::int64_t first, double one) {
    ++x_weights.launches;
    return run_kernel(
        x_experiment.with(x_problem, one_hot(x_problem, x_experiment.inputs, first, one)));
  }

  static bool overflows(const Capture& capture) {
    const TensorData& o = capture[Tensor::kO];
    for (std::int64_t i = 0; i < o.size(); ++i)
      if (!std::isfinite(o.at(i))) return true;
    return false;
  }

  void take(const Capture& capture, std::int64_t first, double one) {
    const TensorData& o = capture[Tensor::kO];
    const std::int64_t dims = x_problem.head_dim_v, keys = x_problem.seqlen_k;
    for (std::int64_t row = 0; row < rows_of(x_problem); ++row)
      for (std::int64_t d = 0; d < dims && first + d < keys; ++d) {
        const double w = o.at(row * dims + d) / one;
        x_weights.value[static_cast<std::size_t>(row * keys + first + d)] =
            std::isfinite(w) ? w : std::numeric_limits<double>::quiet_NaN();
      }
  }

  // What rounding can do to a weight of each row, from the reference's own bound of o. Its absolute part
  // matters for small weights alone, so the larger ones give the relative part.
  void bound(const Capture& capture, std::int64_t first, double one) {
    constexpr double kLarge = 0x1p-14;
    reference::Options options;
    options.tensors = tensor_bit(Tensor::kO);
    options.threads = x_experiment.run.threads;
    const std::int64_t dims = x_problem.head_dim_v;
    for_each_row_block(capture, options, [&](const reference::RowBlock& block) {
      const auto o = static_cast<std::size_t>(Tensor::kO);
      for (std::int64_t r = 0; r < block.rows; ++r) {
        const std::int64_t row = first_row(capture.region, block) + r;
        double& relative = x_weights.relative[static_cast<std::size_t>(row)];
        for (std::int64_t d = 0; d < dims && first + d < x_problem.seqlen_k; ++d) {
          const double value = block.value[o][r * dims + d] / one;
          // Overflow is possible: whatever the kernel has there, it may be right.
          if (block.bound[o][r * dims + d] == HUGE_VAL) relative = HUGE_VAL;
          if (value > kLarge)
            relative = std::max(relative, block.bound[o][r * dims + d] / one / value);
        }
      }
    });
  }

  const Experiment& x_experiment;
  const Problem& x_problem;
  Arithmetic x_arithmetic;
  double x_one = 1.0, x_least_one = std::numeric_limits<double>::infinity();
  Weights x_weights;
};

}  // namespace

Weights read_weights(const Experiment& given, const XrayOptions& options) {
  const Experiment experiment = of_production(given);
  const Problem& problem = experiment.problem;
  Reader reader(experiment);
  const std::int32_t steps = ceil_div(problem.seqlen_k, problem.head_dim_v);
  for (std::int32_t step = 0; step < steps; ++step) {
    if (options.on_step)
      options.on_step(step + 1, steps + 1,
                      fmt::format("keys {} on", std::int64_t{step} * problem.head_dim_v));
    reader.read(std::int64_t{step} * problem.head_dim_v);
  }
  return reader.finish();
}

}  // namespace attn_diag::xraying

// Runs of a kernel on changed inputs, and what they are held against.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attn_diag/harness/xray.h"

namespace attn_diag::xraying {

// q, k and v widened, in coordinates instead of memory.
class Operands {
 public:
  Operands(const Problem& problem, const InputData& inputs);
  // Zeros.
  explicit Operands(const Problem& problem);

  double& q(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d);
  double& k(std::int64_t b, std::int64_t kv_head, std::int64_t j, std::int64_t d);
  double& v(std::int64_t b, std::int64_t kv_head, std::int64_t j, std::int64_t d);
  // Calls f(b, kv_head, j) for each key.
  void for_each_key(const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) const;
  // Rounded to the problem's dtype.
  InputData inputs() const;

  const Problem& problem() const { return x_problem; }

 private:
  Problem x_problem;
  std::vector<double> x_q, x_k, x_v;
};

using RowIndex = std::array<std::int64_t, 3>;  // batch, head, query

// What a run gave, and what rounding can move it by.
struct TrialOutcome {
  Problem problem;
  std::vector<double> o, lse;  // [batch][head][query]([dim]); lse empty where the kernel has none
  std::vector<double> o_bound, lse_bound;
  DType output = DType::kFp32;   // o's type
  bool moves = false;            // from run to run: nothing can be compared to the bit
  std::vector<std::string> nan;  // where NaN begins, if o or lse holds any
  std::size_t flat(const RowIndex& row) const {
    return static_cast<std::size_t>((row[0] * problem.heads + row[1]) * problem.seqlen_q + row[2]);
  }
  std::size_t flat(const RowIndex& row, std::int64_t dim) const {
    return flat(row) * static_cast<std::size_t>(problem.head_dim_v) + static_cast<std::size_t>(dim);
  }
};

// Calls f for each row of a problem.
void for_each_row(const Problem& problem, const std::function<void(const RowIndex&)>& f);

// One kernel, run as often as it takes.
class Trial {
 public:
  // `moves`: it is known that the bits are not the same in every run.
  // `coarse`: as XrayOptions has it. The experiment's problem and inputs are not used.
  Trial(const Experiment& experiment, bool moves, bool coarse = false)
      : x_experiment(experiment), x_moves(moves), x_coarse(coarse) {}
  // Throws Error for what the kernel does not support.
  TrialOutcome operator()(const Operands& operands) const;

 private:
  const Experiment& x_experiment;
  bool x_moves, x_coarse;
};

// Collects cells into a result.
class Judge {
 public:
  explicit Judge(Property property) { x_result.property = property; }

  // NaN is never right where a number is expected: no property is tried on inputs that hold any. Where the other
  // run has NaN, or rounding has no bound (overflow is possible), nothing is said.
  void cell(Tensor t, std::array<std::int64_t, 4> index, double actual, double expected,
            double limit);
  // o of one row, cell by cell: expected(dim) within limit(dim).
  void o_of(const TrialOutcome& run, const RowIndex& row,
            const std::function<double(std::int64_t dim)>& expected,
            const std::function<double(std::int64_t dim)>& limit);
  // lse of one row, where the kernel has it.
  void lse_of(const TrialOutcome& run, const RowIndex& row, double expected, double limit);
  // A row of two runs that has to be the same: to the bit, or within both bounds.
  void same_bits(const TrialOutcome& run, const TrialOutcome& other, const RowIndex& row);
  void same_within_bounds(const TrialOutcome& run, const TrialOutcome& other, const RowIndex& row);
  // Nothing can be said: why.
  PropertyResult not_tried(std::string why);
  PropertyResult finish();

 private:
  // The state of the row that a cell is in.
  std::uint8_t& state_of(const RowIndex& row);

  PropertyResult x_result;
  Problem x_problem;  // of the run that is judged
};

}  // namespace attn_diag::xraying

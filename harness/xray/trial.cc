#include "harness/xray/trial.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attn_diag/reference/coarse_bounds.h"
#include "attn_diag/reference/reference.h"
#include "harness/trace/nan_origin.h"
#include "harness/xray/moves.h"

namespace attn_diag::xraying {
namespace {

std::size_t at(const Strides& s, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
  return static_cast<std::size_t>(b * s.batch + h * s.head + i * s.seq + d);
}

std::vector<double> widened(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<double> out(bytes.size() / size_of(dtype));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = load_element(bytes.data(), dtype, static_cast<std::int64_t>(i));
  return out;
}

std::vector<std::byte> rounded(const std::vector<double>& values, DType dtype) {
  std::vector<std::byte> out(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(out.data(), dtype, static_cast<std::int64_t>(i), values[i]);
  return out;
}

// A row's bound for each of its dims.
void take_coarse_bounds(const Capture& capture, TrialOutcome& out) {
  reference::CoarseBounds bounds =
      reference::coarse_bounds(capture.problem, capture.geometry, capture.arithmetic,
                               {capture.q.data(), capture.k.data(), capture.v.data()});
  const auto dims = static_cast<std::size_t>(capture.problem.head_dim_v);
  out.o_bound.reserve(bounds.o.size() * dims);
  for (const double row : bounds.o) out.o_bound.insert(out.o_bound.end(), dims, row);
  out.lse_bound = std::move(bounds.lse);
}

}  // namespace

Operands::Operands(const Problem& problem, const InputData& inputs)
    : x_problem(problem),
      x_q(widened(inputs.q, problem.dtype)),
      x_k(widened(inputs.k, problem.dtype)),
      x_v(widened(inputs.v, problem.dtype)) {}

Operands::Operands(const Problem& p) : x_problem(p) {
  const auto rows = [](std::int64_t batch, std::int64_t heads, std::int64_t length) {
    return static_cast<std::size_t>(batch * heads * length);
  };
  x_q.resize(rows(p.batch, p.heads, p.seqlen_q) * static_cast<std::size_t>(p.head_dim));
  x_k.resize(rows(p.batch, p.kv_heads, p.seqlen_k) * static_cast<std::size_t>(p.head_dim));
  x_v.resize(rows(p.batch, p.kv_heads, p.seqlen_k) * static_cast<std::size_t>(p.head_dim_v));
}

double& Operands::q(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
  const Problem& p = x_problem;
  return x_q[at(dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim), b, h, i, d)];
}
double& Operands::k(std::int64_t b, std::int64_t kv_head, std::int64_t j, std::int64_t d) {
  const Problem& p = x_problem;
  return x_k[at(dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim), b, kv_head, j, d)];
}
double& Operands::v(std::int64_t b, std::int64_t kv_head, std::int64_t j, std::int64_t d) {
  const Problem& p = x_problem;
  return x_v[at(dense_strides(p.layout, p.kv_heads, p.seqlen_k, p.head_dim_v), b, kv_head, j, d)];
}

void Operands::for_each_key(
    const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) const {
  for (std::int64_t b = 0; b < x_problem.batch; ++b)
    for (std::int64_t h = 0; h < x_problem.kv_heads; ++h)
      for (std::int64_t j = 0; j < x_problem.seqlen_k; ++j) f(b, h, j);
}

InputData Operands::inputs() const {
  InputData out;
  out.q = rounded(x_q, x_problem.dtype);
  out.k = rounded(x_k, x_problem.dtype);
  out.v = rounded(x_v, x_problem.dtype);
  out.kind = "a property's";
  return out;
}

TrialOutcome Trial::operator()(const Operands& operands) const {
  const Problem& p = operands.problem();
  const Capture capture = run_kernel(of_production(x_experiment.with(p, operands.inputs())));
  TrialOutcome out;
  out.problem = p;
  const auto copy = [&](Tensor t, std::vector<double>& to) {
    if (!capture.has(t)) return;
    for (std::int64_t i = 0; i < capture[t].size(); ++i) to.push_back(capture[t].at(i));
  };
  out.output = capture.arithmetic.output;
  out.moves = x_moves || capture.repetition.moved();
  out.nan = where_nan_begins(capture);
  copy(Tensor::kO, out.o);
  copy(Tensor::kLse, out.lse);
  if (x_coarse) {
    take_coarse_bounds(capture, out);
    return out;
  }
  reference::Options options;
  options.tensors = tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse);
  options.threads = x_experiment.run.threads;
  reference::Tensors tensors =
      reference::compute(p, capture.geometry, capture.arithmetic,
                         {capture.q.data(), capture.k.data(), capture.v.data()}, options);
  out.o_bound = std::move(tensors.bound[static_cast<std::size_t>(Tensor::kO)]);
  out.lse_bound = std::move(tensors.bound[static_cast<std::size_t>(Tensor::kLse)]);
  return out;
}

void for_each_row(const Problem& p, const std::function<void(const RowIndex&)>& f) {
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) f({b, h, i});
}

void Judge::cell(Tensor t, std::array<std::int64_t, 4> index, double actual, double expected,
                 double limit) {
  PropertyResult& r = x_result;
  if (!(limit < HUGE_VAL) || std::isnan(expected)) return;  // nothing can be said
  ++r.compared;
  const double error = std::fabs(actual - expected);
  const bool same = actual == expected;
  const bool passed = same || (std::isfinite(error) && error <= limit);
  if (!same)
    r.max_err_over_bound = std::max(r.max_err_over_bound,
                                    std::isfinite(error) && limit > 0 ? error / limit : HUGE_VAL);
  std::uint8_t& state = state_of({index[0], index[1], index[2]});
  state = std::max<std::uint8_t>(state, passed ? 1 : 2);
  if (passed || r.broken++ > 0) return;
  r.tensor = t;
  r.index = index;
  r.actual = actual;
  r.expected = expected;
}

std::uint8_t& Judge::state_of(const RowIndex& row) {
  const Problem& p = x_problem;
  x_result.rows.resize(static_cast<std::size_t>(std::int64_t{p.batch} * p.heads * p.seqlen_q), 0);
  return x_result.rows[static_cast<std::size_t>((row[0] * p.heads + row[1]) * p.seqlen_q + row[2])];
}

void Judge::o_of(const TrialOutcome& run, const RowIndex& row,
                 const std::function<double(std::int64_t)>& expected,
                 const std::function<double(std::int64_t)>& limit) {
  x_problem = run.problem;
  for (std::int64_t d = 0; d < run.problem.head_dim_v; ++d)
    cell(Tensor::kO, {row[0], row[1], row[2], d}, run.o[run.flat(row, d)], expected(d), limit(d));
}

void Judge::lse_of(const TrialOutcome& run, const RowIndex& row, double expected, double limit) {
  x_problem = run.problem;
  if (!run.lse.empty())
    cell(Tensor::kLse, {row[0], row[1], row[2], 0}, run.lse[run.flat(row)], expected, limit);
}

void Judge::same_bits(const TrialOutcome& run, const TrialOutcome& other, const RowIndex& row) {
  if (run.moves || other.moves) return same_within_bounds(run, other, row);
  const auto zero = [](std::int64_t) { return 0.0; };
  o_of(
      run, row, [&](std::int64_t d) { return other.o[other.flat(row, d)]; }, zero);
  if (!other.lse.empty()) lse_of(run, row, other.lse[other.flat(row)], 0);
}

void Judge::same_within_bounds(const TrialOutcome& run, const TrialOutcome& other,
                               const RowIndex& row) {
  o_of(
      run, row, [&](std::int64_t d) { return other.o[other.flat(row, d)]; },
      [&](std::int64_t d) {
        return run.o_bound[run.flat(row, d)] + other.o_bound[other.flat(row, d)];
      });
  if (!other.lse.empty())
    lse_of(run, row, other.lse[other.flat(row)],
           run.lse_bound[run.flat(row)] + other.lse_bound[other.flat(row)]);
}

PropertyResult Judge::not_tried(std::string why) {
  x_result.verdict = PropertyResult::Verdict::kNotTried;
  x_result.why_not = std::move(why);
  return x_result;
}

PropertyResult Judge::finish() {
  if (x_result.compared == 0) return not_tried("no cell could be judged");
  x_result.verdict =
      x_result.broken > 0 ? PropertyResult::Verdict::kBroken : PropertyResult::Verdict::kHolds;
  return x_result;
}

}  // namespace attn_diag::xraying

#include "harness/numerics/cancellation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/capture/reference_rows.h"
#include "harness/numerics/operand_rows.h"

namespace attn_diag {
namespace {

constexpr std::size_t kWorst = 5;
constexpr double kWorthSaying = 1e-6;  // of relative errors

const double* of(const reference::RowBlock& block, Tensor t, bool bound = false) {
  return (bound ? block.bound : block.value)[static_cast<std::size_t>(t)];
}

// By digits, then in order of indices, so that it does not matter who comes first.
bool before(const CancelledDot& a, const CancelledDot& b) {
  return a.digits != b.digits ? a.digits > b.digits : a.index < b.index;
}

double digits_lost(double sum_abs, double sum, double most) {
  if (sum == 0) return most;
  return std::clamp(std::log10(sum_abs / std::fabs(sum)), 0.0, most);
}

}  // namespace

CancellationFinder::CancellationFinder(const Capture& capture) : x_capture(capture) {
  x_found[0].result.tensor = Tensor::kS;
  x_found[1].result.tensor = Tensor::kO;
}

void CancellationFinder::Found::keep(const CancelledDot& dot) {
  auto& worst = result.worst;
  if (worst.size() == kWorst && !before(dot, worst.back())) return;
  worst.insert(std::upper_bound(worst.begin(), worst.end(), dot, before), dot);
  if (worst.size() > kWorst) worst.pop_back();
}

void CancellationFinder::Found::keep_largest(const CancelledDot& dot, double relative) {
  const bool first = !result.largest_relative;
  if (!first && (relative < largest_relative ||
                 (relative == largest_relative && result.largest_relative->index < dot.index)))
    return;
  largest_relative = relative;
  result.largest_relative = dot;
}

void CancellationFinder::Found::add(const CancelledDot& dot, double expected, bool judged) {
  ++result.dots;
  ++result.by_digits[static_cast<std::size_t>(std::min(dot.digits, 16.0))];
  ++digits[static_cast<std::size_t>(dot.digits * kBinsPerDigit)];
  result.max_digits = std::max(result.max_digits, dot.digits);
  keep(dot);
  const double relative = expected == 0 ? 0 : dot.err / std::fabs(expected);
  if (judged && relative >= kWorthSaying) keep_largest(dot, relative);
}

void CancellationFinder::Found::merge(const Found& other) {
  result.dots += other.result.dots;
  for (std::size_t i = 0; i < result.by_digits.size(); ++i)
    result.by_digits[i] += other.result.by_digits[i];
  for (std::size_t i = 0; i < digits.size(); ++i) digits[i] += other.digits[i];
  result.max_digits = std::max(result.max_digits, other.result.max_digits);
  for (const CancelledDot& dot : other.result.worst) keep(dot);
  if (other.result.largest_relative)
    keep_largest(*other.result.largest_relative, other.largest_relative);
}

double CancellationFinder::Found::quantile(double q) const {
  std::int64_t below = 0;
  for (std::size_t bin = 0; bin < digits.size(); ++bin) {
    below += digits[bin];
    if (static_cast<double>(below) >= q * static_cast<double>(result.dots))
      return static_cast<double>(bin) / kBinsPerDigit;
  }
  return 0;
}

void CancellationFinder::add_scores(const reference::RowBlock& block, Found& found) const {
  const Problem& p = x_capture.problem;
  const double* s = of(block, Tensor::kS);
  const double* bound = of(block, Tensor::kS, true);
  const std::int64_t keys = p.seqlen_k, dims = p.head_dim;
  const std::int64_t first = first_row(x_capture.region, block);
  const std::vector<double> k = operand_rows(x_capture, 'k', block.batch, block.head);
  const double scale = std::fabs(static_cast<double>(p.softmax_scale));
  for (std::int32_t r = 0; r < block.rows; ++r) {
    const std::int32_t query = block.query_begin + r;
    const std::vector<double> q = operand_row(x_capture, 'q', block.batch, block.head, query);
    for (std::int64_t j = 0; j < keys; ++j) {
      const double expected = s[r * keys + j];
      if (!std::isfinite(expected)) continue;
      double sum_abs = 0;
      for (std::int64_t d = 0; d < dims; ++d)
        sum_abs +=
            std::fabs(q[static_cast<std::size_t>(d)] * k[static_cast<std::size_t>(j * dims + d)]);
      sum_abs *= scale;
      if (sum_abs == 0) continue;
      CancelledDot dot{{block.batch, block.head, query, j}, sum_abs, expected, 0, 0, 0};
      dot.digits = digits_lost(sum_abs, expected, kDigits);
      bool judged = false;
      if (x_capture.has(Tensor::kS)) {
        const double actual = x_capture[Tensor::kS].at((first + r) * keys + j);
        dot.bound = bound[r * keys + j];
        judged = std::isfinite(actual) && std::isfinite(dot.bound);
        dot.err = judged ? std::fabs(actual - expected) : 0;
      }
      found.add(dot, expected, judged);
    }
  }
}

// For o the weights are the reference's P / l, so that the sums are over the numbers that make o.
void CancellationFinder::add_output(const reference::RowBlock& block, Found& found) const {
  const Problem& p = x_capture.problem;
  const double* s = of(block, Tensor::kS);
  const double* lse = of(block, Tensor::kLse);
  const double* bound = of(block, Tensor::kO, true);
  const std::int64_t keys = p.seqlen_k;
  const auto dims = static_cast<std::size_t>(p.head_dim_v);
  const std::int64_t first = first_row(x_capture.region, block);
  const std::vector<double> v = operand_rows(x_capture, 'v', block.batch, block.head);
  std::vector<double> sum(dims), sum_abs(dims);
  for (std::int32_t r = 0; r < block.rows; ++r) {
    if (!std::isfinite(lse[r])) continue;
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(sum_abs.begin(), sum_abs.end(), 0.0);
    for (std::int64_t j = 0; j < keys; ++j) {
      const double weight = std::exp(s[r * keys + j] - lse[r]);
      if (weight == 0) continue;
      const double* row = v.data() + static_cast<std::size_t>(j) * dims;
      for (std::size_t d = 0; d < dims; ++d) {
        sum[d] += weight * row[d];
        sum_abs[d] += weight * std::fabs(row[d]);
      }
    }
    for (std::size_t d = 0; d < dims; ++d) {
      if (!(sum_abs[d] > 0) || !std::isfinite(sum_abs[d])) continue;
      const auto dim = static_cast<std::int64_t>(d);
      CancelledDot dot{
          {block.batch, block.head, block.query_begin + r, dim}, sum_abs[d], sum[d], 0, 0, 0};
      dot.digits = digits_lost(sum_abs[d], sum[d], kDigits);
      bool judged = false;
      if (x_capture.has(Tensor::kO)) {
        const std::int64_t cell = r * p.head_dim_v + dim;
        const double actual = x_capture[Tensor::kO].at(first * p.head_dim_v + cell);
        dot.bound = bound[cell];
        judged = std::isfinite(actual) && std::isfinite(dot.bound);
        dot.err = judged ? std::fabs(actual - of(block, Tensor::kO)[cell]) : 0;
      }
      found.add(dot, sum[d], judged);
    }
  }
}

void CancellationFinder::add(const reference::RowBlock& block) {
  std::array<Found, 2> found;
  const bool scores = of(block, Tensor::kS) != nullptr;
  const Part part = x_capture.arithmetic.part;
  if (scores && (part == Part::kAttention || part == Part::kScores)) add_scores(block, found[0]);
  if (scores && of(block, Tensor::kLse) != nullptr && part == Part::kAttention)
    add_output(block, found[1]);
  const std::lock_guard lock(x_mutex);
  for (std::size_t i = 0; i < found.size(); ++i) x_found[i].merge(found[i]);
}

std::vector<Cancellation> CancellationFinder::finish() const {
  std::vector<Cancellation> out;
  for (const Found& found : x_found) {
    if (found.result.dots == 0) continue;
    Cancellation c = found.result;
    c.median_digits = found.quantile(0.5);
    c.p99_digits = found.quantile(0.99);
    if (c.largest_relative)
      c.explained =
          c.largest_relative->err <= c.largest_relative->bound && c.largest_relative->digits >= 1;
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace attn_diag

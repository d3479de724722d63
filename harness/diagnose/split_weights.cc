#include "harness/diagnose/split_weights.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "harness/diagnose/decompositions.h"
#include "harness/diagnose/sample.h"

namespace attn_diag::matching {
namespace {

constexpr int kRowsOfFactors = 8;   // of which the factors are found
constexpr int kLookRows = 64;       // that a sentence is said of
constexpr double kRowsAlike = 0.9;  // share of them
constexpr double kSlack = 2;        // bounds that a row may be off its combination
constexpr double kNearName = 2e-3;  // of a factor that is taken for a round number

// The splits of one row, as they would be alone.
struct Parts {
  Eigen::MatrixXd o;  // (dim, splits)
  Eigen::VectorXd w;  // (splits), sums to 1
  double lse = 0;     // of all of them
};

std::int32_t used_splits(const reference::PredictionInputs& c) {
  return ceil_div(num_kv_tiles(c.problem(), c.geometry()), c.geometry().tiles_per_split);
}

// nullopt where a split sees no key of the row: its factor would be anything.
std::vector<std::optional<Parts>> parts_of(const reference::PredictionInputs& c,
                                           const std::vector<reference::RowIndex>& rows) {
  const std::int32_t splits = used_splits(c);
  const auto dim = static_cast<Eigen::Index>(c.problem().head_dim_v);
  std::vector<std::optional<Parts>> all(rows.size(), Parts{});
  std::vector<Eigen::VectorXd> lse(rows.size(), Eigen::VectorXd(splits));
  for (std::int32_t n = 0; n < splits; ++n) {
    reference::Deviation alone;
    alone.combine.only_split = n;
    alone.combine.max_of_counted = true;
    reference::Prediction predicted;
    reference::predict(c, rows, alone, tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse),
                       predicted);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (!all[r]) continue;
      const double l = predicted[Tensor::kLse].value[r];
      if (!std::isfinite(l)) {
        all[r].reset();
        continue;
      }
      all[r]->o.conservativeResize(dim, splits);
      all[r]->o.col(n) = Eigen::Map<const Eigen::VectorXd>(
          predicted[Tensor::kO].value.data() + r * static_cast<std::size_t>(dim), dim);
      lse[r][n] = l;
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!all[r]) continue;
    const double most = lse[r].maxCoeff();
    const Eigen::VectorXd w = (lse[r].array() - most).exp();
    all[r]->lse = most + std::log(w.sum());
    all[r]->w = w / w.sum();
  }
  return all;
}

// Equations a . c = b, each divided by what rounding may make of it.
struct Equations {
  std::vector<Eigen::VectorXd> a;
  std::vector<double> b;

  void add(const Eigen::VectorXd& row, double right, double bound) {
    a.push_back(row / bound);
    b.push_back(right / bound);
  }
  Eigen::MatrixXd left() const {
    Eigen::MatrixXd m(static_cast<Eigen::Index>(a.size()), a.front().size());
    for (std::size_t i = 0; i < a.size(); ++i) m.row(static_cast<Eigen::Index>(i)) = a[i];
    return m;
  }
  Eigen::VectorXd right() const {
    return Eigen::Map<const Eigen::VectorXd>(b.data(), static_cast<Eigen::Index>(b.size()));
  }
};

// The number that a factor is meant to be, if it is near one: 0, n or 1/n, of either sign.
double round_number(double c) {
  const double size = std::fabs(c);
  if (size < kNearName) return 0;
  const double named = size < 1 ? 1 / std::max(1.0, std::round(1 / size)) : std::round(size);
  return std::fabs(named - size) <= kNearName * named && named <= 64 && named >= 1.0 / 64
             ? std::copysign(named, c)
             : c;
}

// Factors of which only ratios are known: such that most of them are ones or other round numbers; among
// equals, that the middle one is 1.
Eigen::VectorXd in_round_numbers(const Eigen::VectorXd& c) {
  std::vector<double> units(c.begin(), c.end());
  std::sort(units.begin(), units.end(),
            [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  std::rotate(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(units.size() / 2),
              units.end());
  Eigen::VectorXd best = c;
  int most = -1;
  for (const double unit : units) {
    if (std::fabs(unit) < kNearName * c.cwiseAbs().maxCoeff()) continue;
    int points = 0;
    for (const double x : c / unit) {
      const double round = round_number(x);
      points += std::fabs(round - 1) < kNearName ? 2 : std::fabs(round - x) > 0 ? 1 : 0;
    }
    if (points <= most) continue;
    most = points;
    best = c / unit;
  }
  return best;
}

class Fit {
 public:
  explicit Fit(const Search& search) {
    const Evidence& evidence = search.evidence();
    const Rows& sample = search.sample();
    std::vector<std::size_t> at;
    std::vector<reference::RowIndex> rows;
    for (std::size_t i = 0; i < sample.size(); ++i)
      if (sample.wrong[i] != 0) at.push_back(i), rows.push_back(sample.row[i]);
    const std::vector<std::optional<Parts>> parts = parts_of(search.cuts().front(), rows);
    const auto dim = static_cast<std::size_t>(evidence.cells(Tensor::kO));
    const bool has_lse = evidence.has(Tensor::kLse);
    int used = 0;
    for (std::size_t i = 0; i < at.size() && used < kRowsOfFactors; ++i) {
      if (!parts[i]) continue;
      const double* const o =
          sample.actual[static_cast<std::size_t>(Tensor::kO)].data() + at[i] * dim;
      if (!std::all_of(o, o + dim, [](double x) { return std::isfinite(x); })) continue;
      ++used;
      const Eigen::VectorXd& w = parts[i]->w;
      for (std::size_t d = 0; d < dim; ++d) {
        const double bound = std::max(sample.right[Tensor::kO].bound[at[i] * dim + d], 1e-12);
        const Eigen::VectorXd of_split = parts[i]->o.row(static_cast<Eigen::Index>(d));
        x_both.add((of_split.array() - o[d]) * w.array(), 0, bound);
        x_o_only.add(of_split.array() * w.array(), o[d], bound);
      }
      if (!has_lse) continue;
      const double sum =
          std::exp(sample.actual[static_cast<std::size_t>(Tensor::kLse)][at[i]] - parts[i]->lse);
      if (std::isfinite(sum))
        x_lse.add(w, sum, std::max(sample.right[Tensor::kLse].bound[at[i]] * sum, 1e-12));
    }
  }

  bool possible() const { return !x_both.a.empty(); }

  // Factors in both sums; by lse, where there is one, they are known and not only their ratios.
  Eigen::VectorXd both() const {
    if (x_lse.a.empty()) return in_round_numbers(nearest_to_kernel(x_both.left()));
    Eigen::MatrixXd left(static_cast<Eigen::Index>(x_both.a.size() + x_lse.a.size()),
                         x_both.a.front().size());
    left << x_both.left(), x_lse.left();
    Eigen::VectorXd right(left.rows());
    right << x_both.right(), x_lse.right();
    return least_squares(left, right);
  }
  Eigen::VectorXd of_o() const { return least_squares(x_o_only.left(), x_o_only.right()); }

 private:
  Equations x_both, x_o_only, x_lse;
};

Candidate candidate_of(const Eigen::VectorXd& fitted, bool o_only) {
  Candidate candidate;
  const reference::Hypothesis* hypothesis = reference::find_hypothesis("split-weights");
  candidate.variant.hypotheses = {hypothesis};
  std::string text;
  for (Eigen::Index n = 0; n < fitted.size(); ++n) {
    const double c = round_number(fitted[n]);
    candidate.variant.deviation.combine.factors[static_cast<std::size_t>(n)] = c;
    text += fmt::format("{}{:.4g}", n == 0 ? "" : ", ", c);
  }
  candidate.variant.deviation.combine.factors_o_only = o_only;
  candidate.variant.parameters = {
      {"c", 0, std::move(text), true},
      {"in", o_only ? 1.0 : 0.0, o_only ? "the sum of o" : "both sums", true}};
  candidate.generality = static_cast<int>(Generality::kFitted);
  candidate.fitted = true;
  return candidate;
}

bool has_merge(const reference::PredictionInputs& c) {
  const std::int32_t splits = used_splits(c);
  return c.geometry().has_split_merge && splits > 1 &&
         splits <= static_cast<std::int32_t>(reference::kWeightedSplits);
}

}  // namespace

std::vector<Candidate> find_split_weights(const Search& search) {
  if (!has_merge(search.cuts().front()) || !search.evidence().has(Tensor::kO)) return {};
  const Fit fit(search);
  if (!fit.possible()) return {};
  std::vector<Candidate> found;
  for (const bool o_only : {false, true}) {
    const Eigen::VectorXd c = o_only ? fit.of_o() : fit.both();
    if (c.allFinite()) found.push_back(candidate_of(c, o_only));
  }
  search.judge_on_sample(found);
  std::erase_if(found, [](const Candidate& c) { return !accounts(c); });
  std::vector<Candidate*> pointers;
  for (Candidate& candidate : found) pointers.push_back(&candidate);
  search.confirm(pointers);
  std::erase_if(found, [](const Candidate& c) { return !c.confirmed || !accounts(c); });
  return found;
}

std::string split_weights_sentence(const Evidence& evidence, const reference::PredictionInputs& c) {
  if (!has_merge(c)) return {};
  const auto dim = static_cast<std::size_t>(evidence.cells(Tensor::kO));
  const std::int32_t splits = used_splits(c);
  // With no more columns than splits, every row is some combination of the splits.
  if (dim < 2 * static_cast<std::size_t>(splits)) return {};
  std::vector<std::int64_t> wrong;
  for (std::int64_t row = 0; row < evidence.rows(); ++row)
    if (evidence.wrong(row)) wrong.push_back(row);
  const Rows rows = read_rows(evidence, c, spread(wrong, kLookRows));
  const std::vector<std::optional<Parts>> parts = parts_of(c, rows.row);
  std::int64_t looked = 0, explained = 0;
  Eigen::VectorXd low = Eigen::VectorXd::Constant(splits, HUGE_VAL), high = -low;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Eigen::Map<const Eigen::VectorXd> o(
        rows.actual[static_cast<std::size_t>(Tensor::kO)].data() + r * dim,
        static_cast<Eigen::Index>(dim));
    const Eigen::Map<const Eigen::VectorXd> bound(rows.right[Tensor::kO].bound.data() + r * dim,
                                                  static_cast<Eigen::Index>(dim));
    if (!parts[r] || !o.allFinite()) continue;
    ++looked;
    const Eigen::MatrixXd basis = parts[r]->o * parts[r]->w.asDiagonal();
    const Eigen::VectorXd factors = least_squares(basis, o);
    const double room = kSlack * (1 + factors.cwiseAbs().maxCoeff());
    if (!((o - basis * factors).array().abs() <= room * bound.array()).all()) continue;
    ++explained;
    low = low.cwiseMin(factors);
    high = high.cwiseMax(factors);
  }
  if (looked == 0 || static_cast<double>(explained) < kRowsAlike * static_cast<double>(looked))
    return {};
  std::string ranges;
  for (Eigen::Index n = 0; n < splits; ++n)
    ranges += fmt::format("{}split {}: {:.3g} to {:.3g}", n == 0 ? "" : ", ", n, low[n], high[n]);
  return fmt::format(
      "{} of {} rows are a combination of the splits' own outputs: each split is right, and the "
      "merge is wrong. Its weights over the right ones: {}",
      explained, looked, ranges);
}

}  // namespace attn_diag::matching

#include "harness/diagnose/residual.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <optional>

#include "attn_diag/harness/pattern.h"
#include "harness/diagnose/decompositions.h"
#include "harness/diagnose/judge.h"
#include "harness/diagnose/residual_rows.h"
#include "harness/diagnose/sample.h"
#include "harness/diagnose/split_weights.h"
#include "harness/trace/nan_origin.h"

namespace attn_diag::matching {
namespace {

constexpr int kRowsOfHead = 128;    // looked at of one head
constexpr int kHeads = 8;           // looked at
constexpr double kRankNoise = 3;    // singular values up to this many times the bounds are rounding
constexpr double kAlike = 0.9;      // share of rows or heads for which a sentence is said
constexpr double kFactorSlack = 2;  // bounds a row may be off its factor's prediction

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Block = Eigen::Map<const Matrix>;

struct Head {
  Rows rows;  // wrong ones
  Matrix actual, right, bound;
};

// The wrong rows of some heads, in full, of one tensor.
std::vector<Head> wrong_heads(const Evidence& evidence, const reference::PredictionInputs& c,
                              Tensor t) {
  std::vector<Head> heads;
  const auto& extent = evidence.capture().region.extent;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(extent[0] * extent[1]));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  for (const std::int64_t number : spread(numbers, kHeads)) {
    std::vector<std::int64_t> wrong;
    for (std::int64_t q = 0; q < extent[2]; ++q)
      if (evidence.wrong(number * extent[2] + q)) wrong.push_back(number * extent[2] + q);
    if (wrong.size() < 2) continue;
    wrong = spread(wrong, kRowsOfHead);
    std::sort(wrong.begin(), wrong.end());
    Head head;
    head.rows = read_rows(evidence, c, std::move(wrong));
    const auto n = static_cast<Eigen::Index>(head.rows.size());
    const auto cells = static_cast<Eigen::Index>(evidence.cells(t));
    const auto at = static_cast<std::size_t>(t);
    head.actual = Block(head.rows.actual[at].data(), n, cells);
    head.right = Block(head.rows.right[t].value.data(), n, cells);
    head.bound = Block(head.rows.right[t].bound.data(), n, cells);
    if (!head.actual.allFinite() || !head.right.allFinite() || !head.bound.allFinite()) continue;
    heads.push_back(std::move(head));
  }
  return heads;
}

// How many singular values of the residual stand out of rounding.
Eigen::Index rank_of(const Head& head) {
  const double noise = kRankNoise * head.bound.norm();
  return (singular_values(head.actual - head.right).array() > noise).count();
}

void say_rank(const std::vector<Head>& heads, std::vector<std::string>& sentences) {
  Eigen::Index lowest = 0, highest = 0, full = 0;
  for (const Head& head : heads) {
    const Eigen::Index rank = rank_of(head);
    if (&head == &heads.front() || rank < lowest) lowest = rank;
    highest = std::max(highest, rank);
    full = std::max(full, std::min(head.actual.rows(), head.actual.cols()));
  }
  if (highest == 0 || highest * 4 > full) return;
  sentences.push_back(
      lowest == highest
          ? fmt::format("the residual of a head has rank {} (of {}): {}", highest, full,
                        highest == 1 ? "one row of numbers, times one factor a query"
                                     : "few rows of V, or few keys, are behind it")
          : fmt::format(
                "the residual of a head has rank {} to {} (of {}): few rows of V, or few keys, "
                "are behind it",
                lowest, highest, full));
}

// The factor of least squares of a row, if the row is that factor times the right one.
std::optional<double> factor_of(const Head& head, Eigen::Index row) {
  const auto right = head.right.row(row).array(), actual = head.actual.row(row).array();
  const double square = right.square().sum();
  if (!(square > 0)) return std::nullopt;
  const double factor = (right * actual).sum() / square;
  const double room = kFactorSlack * (1 + std::fabs(factor));
  if (((actual - factor * right).abs() <= room * head.bound.row(row).array()).all()) return factor;
  return std::nullopt;
}

void say_factor(const std::vector<Head>& heads, std::vector<std::string>& sentences) {
  std::int64_t rows = 0, explained = 0, heads_constant = 0;
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const Head& head : heads) {
    double head_low = HUGE_VAL, head_high = -HUGE_VAL;
    for (Eigen::Index r = 0; r < head.actual.rows(); ++r) {
      ++rows;
      const std::optional<double> factor = factor_of(head, r);
      if (!factor) continue;
      ++explained;
      head_low = std::min(head_low, *factor);
      head_high = std::max(head_high, *factor);
    }
    low = std::min(low, head_low);
    high = std::max(high, head_high);
    heads_constant += head_high - head_low <= 1e-3 * std::fabs(head_high);
  }
  if (rows == 0 || static_cast<double>(explained) < kAlike * static_cast<double>(rows)) return;
  if (high - low <= 1e-3 * std::fabs(high))
    sentences.push_back(fmt::format("every row is {:.4g} times the right one", (low + high) / 2));
  else if (heads_constant == static_cast<std::int64_t>(heads.size()))
    sentences.push_back(fmt::format(
        "every head is a constant times the right one, between {:.4g} and {:.4g}", low, high));
  else
    sentences.push_back(fmt::format(
        "{} of {} rows are the right ones times a factor of their own, between {:.4g} and {:.4g}",
        explained, rows, low, high));
}

// A residual that is, in each row, a multiple of the mean of V: keys that should weigh nothing weigh alike.
void say_mean_of_v(const Evidence& evidence, const std::vector<Head>& heads,
                   std::vector<std::string>& sentences) {
  std::int64_t rows = 0, explained = 0;
  for (const Head& head : heads) {
    const reference::RowIndex& first = head.rows.row.front();
    const std::vector<double> mean = mean_of_v(evidence.capture(), first.batch, first.head);
    const Eigen::Map<const Eigen::RowVectorXd> v(mean.data(),
                                                 static_cast<Eigen::Index>(mean.size()));
    if (v.size() != head.actual.cols() || !(v.squaredNorm() > 0)) return;
    for (Eigen::Index r = 0; r < head.actual.rows(); ++r) {
      // o = a right + b mean(V): two unknowns.
      Eigen::MatrixXd basis(v.size(), 2);
      basis << head.right.row(r).transpose(), v.transpose();
      const Eigen::VectorXd actual = head.actual.row(r).transpose();
      const Eigen::VectorXd x = least_squares(basis, actual);
      const Eigen::ArrayXd off = (actual - basis * x).array().abs();
      ++rows;
      explained += std::fabs(x[1]) > 0 && (off <= kFactorSlack * (1 + std::fabs(x[0])) *
                                                      head.bound.row(r).transpose().array())
                                              .all();
    }
  }
  if (rows > 0 && static_cast<double>(explained) >= kAlike * static_cast<double>(rows))
    sentences.emplace_back(
        "each row is a factor times the right one plus a multiple of the mean of V: keys that "
        "should weigh nothing, or unlike, weigh alike");
}

void say_zeros(const std::vector<Head>& heads, std::vector<std::string>& sentences) {
  std::int64_t rows = 0, zero = 0, columns = 0, zero_columns = 0;
  for (const Head& head : heads) {
    rows += head.actual.rows();
    columns += head.actual.cols();
    for (Eigen::Index r = 0; r < head.actual.rows(); ++r)
      zero += (head.actual.row(r).array() == 0).all();
    for (Eigen::Index d = 0; d < head.actual.cols(); ++d)
      zero_columns += (head.actual.col(d).array() == 0).all();
  }
  if (zero > 0) sentences.push_back(fmt::format("{} of {} wrong rows are zero", zero, rows));
  if (zero_columns > 0 && zero < rows)
    sentences.push_back(fmt::format("{} of {} columns of the wrong rows are zero",
                                    zero_columns / static_cast<std::int64_t>(heads.size()),
                                    columns / static_cast<std::int64_t>(heads.size())));
}

}  // namespace

std::vector<std::string> residual_structure(const Evidence& evidence,
                                            const reference::PredictionInputs& c,
                                            const Tolerance& tolerance, int threads) {
  std::vector<std::string> sentences;
  const Capture& capture = evidence.capture();
  const Tensor t = evidence.tensors().back();
  for (const PatternStatement& statement : describe_pattern(
           collect_wrong_cells(capture, t, tolerance, threads), c.problem(), c.geometry()))
    if (statement.kind != StatementKind::kHint)
      sentences.push_back((statement.text.starts_with("where ") ? "wrong " : "") + statement.text);
  for (std::string& sentence : where_nan_begins(capture)) sentences.push_back(std::move(sentence));
  if (t != Tensor::kO) return sentences;
  const std::vector<Head> heads = wrong_heads(evidence, c, t);
  if (std::string merge = split_weights_sentence(evidence, c); !merge.empty())
    sentences.push_back(std::move(merge));
  if (heads.empty()) return sentences;
  say_zeros(heads, sentences);
  say_factor(heads, sentences);
  say_mean_of_v(evidence, heads, sentences);
  say_rank(heads, sentences);
  for (std::string& sentence : moved_rows(evidence, c)) sentences.push_back(std::move(sentence));
  return sentences;
}

}  // namespace attn_diag::matching

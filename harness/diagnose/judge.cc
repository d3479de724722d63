#include "harness/diagnose/judge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "harness/compare/judgement.h"

namespace attn_diag::matching {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnknownPrecision = 0.9;
constexpr double kLeastJudged = 0.25;
constexpr double kLeastTelling = 0.1;
constexpr double kLeastPlain = 0.1;
constexpr std::size_t kMostNumbers = 16;  // collected

double part(std::int64_t x, std::int64_t of) {
  return static_cast<double>(x) / static_cast<double>(std::max<std::int64_t>(1, of));
}

// A number as far as it tells: to about one part in a thousand.
std::uint64_t coarse(double x) {
  return static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) +
                                    0x1000u) >>
         13;
}

// Keeps what a wrong cell is and should be, if there is room.
void note_number(RowFit& fit, double actual, double right) {
  const std::uint64_t number = coarse(actual) << 32 | coarse(right);
  const auto end = fit.numbers.begin() + static_cast<std::ptrdiff_t>(fit.num_numbers);
  if (fit.num_numbers < fit.numbers.size() && std::find(fit.numbers.begin(), end, number) == end)
    fit.numbers[fit.num_numbers++] = number;
}

}  // namespace

Rows read_rows(const Evidence& evidence, const reference::PredictionInputs& c,
               std::vector<std::int64_t> flat) {
  Rows rows;
  rows.flat = std::move(flat);
  for (const std::int64_t at : rows.flat) {
    rows.row.push_back(evidence.row(at));
    rows.wrong.push_back(evidence.wrong(at) ? 1 : 0);
  }
  for (const Tensor t : evidence.tensors()) {
    rows.actual[static_cast<std::size_t>(t)] = evidence.read(t, rows.flat);
    rows.written[static_cast<std::size_t>(t)] = evidence.written(t, rows.flat);
  }
  reference::predict(c, rows.row, reference::Deviation{}, evidence.mask(), rows.right);
  return rows;
}

double residual_over_bound(double actual, double predicted, double bound) {
  if (actual == predicted || (std::isnan(actual) && std::isnan(predicted))) return 0;
  const double residual = std::fabs(actual - predicted);
  if (!std::isfinite(residual) || !(bound > 0)) return kInfinity;
  return residual / bound;
}

bool contradicts_memory(const Rows& rows, Tensor t, std::size_t cell,
                        const reference::Prediction::Values& predicted, std::size_t at) {
  const std::vector<std::uint8_t>& written = rows.written[static_cast<std::size_t>(t)];
  if (written.empty()) return false;
  if (predicted.unwritten[at] != 0)
    return !std::isnan(rows.actual[static_cast<std::size_t>(t)][cell]);
  return predicted.known[at] != 0 && written[cell] == 0;
}

RowFit judge_row(const Evidence& evidence, const Rows& rows, std::size_t at,
                 const reference::Prediction& prediction, std::size_t first) {
  // The wrong cell furthest from what is right: how far it is, and the prediction's bound there.
  struct Furthest {
    double off = 0, distance = 0, width = 0;
    bool tells() const { return off > 1 && !(width > distance); }
  };
  RowFit fit;
  Furthest number, special;
  for (const Tensor t : evidence.tensors()) {
    const auto index = static_cast<std::size_t>(t);
    const auto n = static_cast<std::size_t>(evidence.cells(t));
    const reference::Prediction::Values& predicted = prediction[t];
    const reference::Prediction::Values& right = rows.right[t];
    if (predicted.value.empty() || right.value.empty()) continue;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t r = at * n + i, p = (at - first) * n + i;
      const double actual = rows.actual[index][r];
      if (contradicts_memory(rows, t, r, predicted, p)) fit.worst = kInfinity;
      if (predicted.known[p] == 0) {
        const bool passed = judge_cell(actual, right.value[r], right.bound[r]).passes;
        (passed ? fit.unknown_right : fit.unknown_wrong) += 1;
        continue;
      }
      const double value = predicted.value[p], bound = predicted.bound[p];
      if (bound == kInfinity && std::isfinite(value)) {
        ++fit.unbounded;
        continue;
      }
      const double residual = residual_over_bound(actual, value, bound);
      fit.worst = std::max(fit.worst, residual);
      if (std::isfinite(value) && bound > std::max(kNoBound, std::fabs(value)) && residual <= 1) {
        ++fit.unbounded;
        continue;
      }
      ++fit.judged;
      const bool wrong = !judge_cell(actual, right.value[r], right.bound[r]).passes;
      const bool is_special = wrong && (!std::isfinite(actual) || actual == 0);
      ++(is_special ? fit.special : fit.plain)[index];
      if (!wrong) continue;
      if (!is_special) note_number(fit, actual, right.value[r]);
      const double off = residual_over_bound(actual, right.value[r], right.bound[r]);
      Furthest& furthest = is_special ? special : number;
      if (off > furthest.off)
        furthest = {off, std::fabs(actual - right.value[r]), std::isfinite(value) ? bound : 0};
    }
  }
  fit.within = fit.worst <= 1;
  fit.by_place = number.off <= 1 && special.off <= 1 && fit.unknown_wrong > 0;
  fit.by_pattern = !fit.by_place && !number.tells() && special.tells();
  fit.telling =
      fit.within && rows.wrong[at] != 0 && (fit.by_place || fit.by_pattern || number.tells());
  return fit;
}

void Tally::add(const RowFit& fit, bool wrong) {
  ++rows;
  within += fit.within;
  near += !fit.within && fit.worst <= kNearMiss;
  judged += fit.judged;
  unknown_wrong += fit.unknown_wrong;
  unknown_right += fit.unknown_right;
  unbounded += fit.unbounded;
  for (std::size_t t = 0; t < special.size(); ++t) {
    special[t] += fit.special[t];
    plain[t] += fit.plain[t];
  }
  worst = std::max(worst, fit.worst);
  if (!wrong) return;
  for (std::size_t i = 0; i < fit.num_numbers && numbers.size() < kMostNumbers; ++i)
    numbers.insert(fit.numbers[i]);
  ++wrong_rows;
  wrong_within += fit.within;
  telling += fit.telling;
  by_place += fit.telling && fit.by_place;
  by_pattern += fit.telling && fit.by_pattern;
  wrong_worst.push_back(static_cast<float>(fit.worst));
}

void Tally::add(const Tally& other) {
  rows += other.rows;
  within += other.within;
  wrong_rows += other.wrong_rows;
  wrong_within += other.wrong_within;
  telling += other.telling;
  near += other.near;
  judged += other.judged;
  unknown_wrong += other.unknown_wrong;
  unknown_right += other.unknown_right;
  unbounded += other.unbounded;
  by_place += other.by_place;
  by_pattern += other.by_pattern;
  for (std::size_t t = 0; t < special.size(); ++t) {
    special[t] += other.special[t];
    plain[t] += other.plain[t];
  }
  numbers.insert(other.numbers.begin(), other.numbers.end());
  worst = std::max(worst, other.worst);
  wrong_worst.insert(wrong_worst.end(), other.wrong_worst.begin(), other.wrong_worst.end());
}

double Tally::median_wrong() const {
  if (wrong_worst.empty()) return 0;
  std::vector<float> sorted = wrong_worst;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

double judged_share(const Tally& t) {
  return part(t.judged, t.judged + t.unknown_wrong + t.unknown_right + t.unbounded);
}

std::int64_t rows_by_value(const Tally& t) { return t.telling - t.by_place - t.by_pattern; }

bool pattern_tells(const Tally& t) {
  for (std::size_t i = 0; i < t.special.size(); ++i)
    if (t.special[i] > 0 && part(t.plain[i], t.special[i] + t.plain[i]) < kLeastPlain) return false;
  return true;
}

std::int64_t telling_rows(const Tally& t) {
  if (judged_share(t) < kLeastJudged) return 0;
  return t.telling - (t.within + t.near >= t.rows ? 0 : t.by_place) -
         (pattern_tells(t) ? 0 : t.by_pattern);
}

bool inside(const Tally& t) {
  const std::int64_t unknown = t.unknown_wrong + t.unknown_right;
  if (t.by_place > 0 && part(t.unknown_wrong, unknown) < kUnknownPrecision) return false;
  // Rows that tell by their place or pattern say nothing for the others.
  const std::int64_t others = t.wrong_rows - t.by_place - (pattern_tells(t) ? t.by_pattern : 0);
  if (others > 0 && part(rows_by_value(t), others) < kLeastTelling) return false;
  const std::int64_t allowed = (t.rows + kRowsPerNearMiss - 1) / kRowsPerNearMiss;
  return t.within + t.near >= t.rows && t.near <= allowed && telling_rows(t) > 0;
}

bool outweighs_its_freedom(const Tally& t, bool fitted) {
  constexpr std::int64_t kRows = 3;
  constexpr std::size_t kNumbersIfFitted = 4, kNumbers = 2;
  if (fitted) return rows_by_value(t) >= kRows && t.numbers.size() >= kNumbersIfFitted;
  if (rows_by_value(t) > 0) return t.numbers.size() >= kNumbers;
  // Which cells are wrong tells nothing where no others are right.
  constexpr std::int64_t kRightCells = 8;
  return t.by_place == 0 || t.judged >= kRightCells;
}

bool tells_by_value(const Tally& t) {
  return rows_by_value(t) > 0 && part(rows_by_value(t), t.wrong_rows) >= kLeastTelling;
}

}  // namespace attn_diag::matching

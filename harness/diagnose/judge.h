// Whether a prediction accounts for a recorded row. The one place that says what "explained" means.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "attn_diag/reference/counterfactual.h"
#include "harness/diagnose/evidence.h"

namespace attn_diag::matching {

// Of what nothing is known, the bound is larger.
inline constexpr double kNoBound = 1e20;

// Some rows of the evidence with what was recorded there and what would have been right.
struct Rows {
  std::vector<std::int64_t> flat;
  std::vector<reference::RowIndex> row;
  std::vector<std::uint8_t> wrong;
  std::array<std::vector<double>, kNumTensors> actual;  // [row][cell]
  // Whether the cell was written, [row][cell]; empty where that is not known.
  std::array<std::vector<std::uint8_t>, kNumTensors> written;
  reference::Prediction right;

  std::size_t size() const { return flat.size(); }
};
// `right` is predicted on `c`.
Rows read_rows(const Evidence& evidence, const reference::PredictionInputs& c,
               std::vector<std::int64_t> flat);

struct RowFit {
  // Every judged cell is within the prediction's bound.
  bool within = false;
  // `within`, and the row is wrong, and the right value is not within the same bound: see judge_row.
  bool telling = false;
  // The largest residual over bound; +inf where NaN or an infinity differs.
  double worst = 0;
  // Cells that the prediction cannot know, by whether what was recorded there is wrong.
  std::int64_t unknown_wrong = 0, unknown_right = 0;
  // Cells whose bound is beyond any number: they pass, and say nothing.
  std::int64_t unbounded = 0;
  std::int64_t judged = 0;
  bool by_place = false;  // telling, but no wrong cell is judged
  bool by_pattern =
      false;  // telling, but what is wrong is NaN, infinite or 0, which many formulas give
  // Judged cells of each tensor: wrong ones that are NaN, infinite or 0, and all others.
  std::array<std::int64_t, kNumTensors> special{}, plain{};
  // Up to eight wrong numbers, to 1 part in 1000: equal where the right and the recorded value are.
  std::array<std::uint64_t, 8> numbers{};
  std::size_t num_numbers = 0;
};

// Row `at` of `rows` under a prediction whose first row is row `first` of `rows`.
//
// A cell is judged if the prediction knows it and its bound is finite. It passes if |recorded -
// predicted| <= bound, or both are NaN, or the same infinity. Where it is known whether cells were
// written, a cell fails that should have been written and was not, or that should not and is no NaN: the memory
// began as NaN, and so did the workspace, from which a merge may have written it. A wrong row tells nothing for a
// prediction whose bound is so wide that it takes in the right value too: at the judged cell that is furthest from
// the right value (in bounds of the right value), the prediction's bound must not be larger than that distance. If
// none of its wrong cells is judged, a row tells by its place; if those that are judged are NaN, infinite or 0, by
// its pattern.
RowFit judge_row(const Evidence& evidence, const Rows& rows, std::size_t at,
                 const reference::Prediction& prediction, std::size_t first);

// Whether `cell` of `rows` cannot be what is predicted `at`, whatever its value: it should have been written
// and was not, or should not and is no NaN. Only where it is known what was written.
bool contradicts_memory(const Rows& rows, Tensor t, std::size_t cell,
                        const reference::Prediction::Values& predicted, std::size_t at);

// residual over bound of one cell: 0 where equal, +inf where it cannot pass.
double residual_over_bound(double actual, double predicted, double bound);

// What many rows add up to.
struct Tally {
  std::int64_t rows = 0, within = 0, wrong_rows = 0, wrong_within = 0, telling = 0;
  std::int64_t near = 0;  // not within, but within kNearMiss bounds
  std::int64_t judged = 0, unknown_wrong = 0, unknown_right = 0;  // cells
  std::int64_t unbounded = 0;
  std::int64_t by_place = 0;    // telling rows of which no wrong cell was judged
  std::int64_t by_pattern = 0;  // telling rows of which every wrong cell is NaN, infinite or 0
  std::array<std::int64_t, kNumTensors> special{}, plain{};
  std::set<std::uint64_t> numbers;  // different ones among the wrong, as far as they were collected
  double worst = 0;
  std::vector<float> wrong_worst;  // of each wrong row, in no order

  void add(const RowFit& fit, bool wrong);
  void add(const Tally& other);
  double median_wrong() const;
};

// The share of the cells that were judged.
double judged_share(const Tally& tally);
// Rows that tell by numbers, not by where they are NaN, infinite, 0 or unwritten.
std::int64_t rows_by_value(const Tally& tally);
// Whether NaN, infinities and zeros tell: in each tensor with such wrong cells, the prediction says for at least one
// cell in ten that it is another number, and is right.
bool pattern_tells(const Tally& tally);
// The telling rows: none where less than a quarter of the cells is judged, those that tell by their
// place alone only where every row is within or near, and those that tell by their pattern where that tells.
std::int64_t telling_rows(const Tally& tally);

// The bounds are to first order: one in 200 rows (rounded up) may be up to twice as far off.
inline constexpr double kNearMiss = 2.0;
inline constexpr std::int64_t kRowsPerNearMiss = 200;

// Whether a hypothesis accounts for everything: every row is within, except the near misses allowed; of the wrong
// rows that do not tell by their place, one in ten is telling; a quarter of the cells are judged; and where rows tell
// by their place, at least 9 in 10 of the cells that are not judged are wrong.
bool inside(const Tally& tally);

// Whether there is more evidence than freedom: with a parameter that was fitted, three telling rows and four
// different numbers; where nothing was, two numbers, unless rows tell by place or pattern alone.
bool outweighs_its_freedom(const Tally& tally, bool fitted);
// For candidates among very many (pairs, places): whether one in ten of the wrong rows tells by its numbers.
bool tells_by_value(const Tally& tally);

}  // namespace attn_diag::matching

#include "reference/bounds_reduce.h"

#include <algorithm>
#include <cmath>

#include "reference/infinity.h"
#include "reference/matrix.h"

namespace attn_diag::reference {
namespace {

// One step sum' = a * sum + b * part, as numbers that turn the errors and magnitudes of sum and
// part into the error of sum'.
struct Step {
  double sum_error = 0, sum_size = 0, part_error = 0, part_size = 0, result_size = 0, absolute = 0;

  double operator()(double e_sum, double sum, double e_part, double part, double result) const {
    return sum_error * e_sum + sum_size * std::fabs(sum) + part_error * e_part +
           part_size * std::fabs(part) + result_size * std::fabs(result) + absolute;
  }
};

// No multiplication at all.
constexpr Factor kOne{1, 0, 0};

Step step_of(const ErrorModel& model, const Factor& a, const Factor& b, bool adds) {
  const double up = adds ? 1 + model.op.u : 1;
  Step s;
  s.sum_size = (a.value * a.relative + a.absolute) * up;
  s.sum_error = a.value * up + s.sum_size;
  s.part_size = (b.value * b.relative + b.absolute) * up;
  s.part_error = b.value * up + s.part_size;
  s.result_size = adds ? model.op.u : 0;
  s.absolute = 2 * model.op.tiny * up;
  return s;
}

class RowReduce {
 public:
  RowReduce(const Plan& plan, const ErrorModel& model, const BlockValues& values, std::int32_t row,
            BlockBounds& bounds)
      : plan_(plan),
        model_(model),
        values_(values),
        bounds_(bounds),
        row_(row),
        isolate_(plan.options.mode == BoundMode::kIsolate),
        dim_(plan.pv ? plan.problem.head_dim_v : 0) {}

  void run() {
    if (plan_.reduce) {
      error_o_.setZero(dim_);
      merged_o_.setZero(dim_);
      part_error_.setZero(dim_);
      merge();
      output();
    }
    for (std::int32_t t = 0; t < plan_.tiles; ++t) {
      const std::int64_t cell = cell_of(t);
      const double frame = bounds_.frame[static_cast<std::size_t>(cell)];
      to_recorded_frame(frame, values_[Tensor::kL] + cell, bounds_[Tensor::kL] + cell, 1);
      if (plan_.pv)
        to_recorded_frame(shift(frame), values_[Tensor::kPartialO] + cell * dim_,
                          bounds_[Tensor::kPartialO] + cell * dim_, dim_);
    }
  }

 private:
  std::int64_t cell_of(std::int32_t tile) const { return std::int64_t{row_} * plan_.tiles + tile; }

  // Frames cancel where errors accumulate; where inputs are given they are those of the reference.
  double shift(double frame) const { return isolate_ ? 0 : frame; }

  // The error of a reference value that is handed to the kernel in its type.
  double given(double value) const { return model_.op.u * std::fabs(value) + model_.op.tiny; }

  // exp(from - to) between two frames whose errors are given; `stored`: what narrowing m to the type
  // of the partials adds to `from` alone.
  Factor between(double from, double to, double from_error, double to_error,
                 double stored = 0) const {
    if (from == -kInf) return {0, 0, from_error + to_error < kInf ? 0 : kInf};
    const double x = from - to, errors = from_error + to_error;
    const double rounding = model_.op.u * (std::fabs(x) + errors + stored) + stored;
    return isolate_ ? factor_of(model_, x, errors + rounding, 0)
                    : factor_of(model_, x, rounding, errors);
  }

  // bound = error * e^frame + |value| * (e^frame - 1), infinite where the value may overflow.
  void to_recorded_frame(double frame, const double* value, double* error, Eigen::Index n) const {
    const double grow = exp_above(frame) * kRoom, extra = expm1_above(frame) * kRoom;
    for (Eigen::Index i = 0; i < n; ++i) {
      const double bound = error[i] * grow + std::fabs(value[i]) * extra;
      error[i] = std::fabs(value[i]) + bound <= model_.op.largest ? bound : kInf;
    }
  }

  // The recurrence over one split's tiles; leaves the errors of its last tile in error_l_, error_o_.
  void run_split(KeyRange tiles) {
    const double* m = values_[Tensor::kM];
    const double* running_m = values_[Tensor::kRunningM];
    const bool own_frames = plan_.geometry.frame == Frame::kTile;
    for (std::int32_t t = tiles.begin; t < tiles.end; ++t) {
      const std::int64_t cell = cell_of(t);
      const auto at = static_cast<std::size_t>(cell);
      const bool first = t == tiles.begin;
      if (running_m[cell] == -kInf && bounds_.running[at] == 0) {  // nothing seen yet: all is 0
        bounds_[Tensor::kRunningM][cell] = bounds_[Tensor::kRunningL][cell] = 0;
        if (plan_.pv) RowOut(bounds_[Tensor::kRunningO] + cell * dim_, dim_).setZero();
        continue;
      }
      const Factor alpha = first ? Factor{}
                                 : between(running_m[cell - 1], running_m[cell],
                                           bounds_.running[at - 1], bounds_.running[at]);
      const Factor beta =
          own_frames ? between(m[cell], running_m[cell], bounds_.frame[at], bounds_.running[at])
                     : kOne;
      const Step step = step_of(model_, alpha, beta, !first);
      const double frame = bounds_.running[at];
      bounds_[Tensor::kRunningM][cell] = frame * kRoom;
      const double l = values_[Tensor::kL][cell];
      error_l_ = step(error_l_, first ? 0 : values_[Tensor::kRunningL][cell - 1],
                      isolate_ ? given(l) : bounds_[Tensor::kL][cell], l,
                      values_[Tensor::kRunningL][cell]);
      bounds_[Tensor::kRunningL][cell] = error_l_;
      to_recorded_frame(shift(frame), values_[Tensor::kRunningL] + cell,
                        bounds_[Tensor::kRunningL] + cell, 1);
      if (!plan_.pv) continue;
      const double* part = values_[Tensor::kPartialO] + cell * dim_;
      if (isolate_)
        for (Eigen::Index d = 0; d < dim_; ++d) part_error_[d] = given(part[d]);
      else
        part_error_ = RowIn(bounds_[Tensor::kPartialO] + cell * dim_, dim_);
      add(step, part_error_.data(), part,
          first ? nullptr : values_[Tensor::kRunningO] + (cell - 1) * dim_,
          values_[Tensor::kRunningO] + cell * dim_, error_o_);
      RowOut(bounds_[Tensor::kRunningO] + cell * dim_, dim_) = error_o_;
      to_recorded_frame(shift(frame), values_[Tensor::kRunningO] + cell * dim_,
                        bounds_[Tensor::kRunningO] + cell * dim_, dim_);
    }
  }

  // errors := step applied to every dim.
  void add(const Step& step, const double* part_error, const double* part, const double* sum,
           const double* result, Eigen::ArrayXd& errors) const {
    for (Eigen::Index d = 0; d < dim_; ++d)
      errors[d] = step(errors[d], sum == nullptr ? 0 : sum[d], part_error[d], part[d], result[d]);
  }

  // How far the m of a split may be moved by being stored, or its lse m + ln l, for an error of l of
  // up to kLargestLError of it.
  static constexpr double kLargestLError = 0.0625;
  double stored_m_error(std::int64_t cell) const {
    const Rounding& store = model_.stats;
    const double m = values_[Tensor::kRunningM][cell], l = values_[Tensor::kRunningL][cell];
    if (store.u == 0 || m == -kInf || !plan_.geometry.has_split_merge) return 0;
    const double e = bounds_.running[static_cast<std::size_t>(cell)];
    const double size = std::fabs(m) + e + std::fabs(std::log(l)) + 2 * kLargestLError;
    return size <= store.largest ? store.u * size + store.tiny : kInf;
  }

  void merge() {
    // The frame of the merge and its error: the largest of the splits'.
    m_ = values_.last_m[static_cast<std::size_t>(row_)];
    double high = -kInf, low = -kInf;
    for (std::int32_t n = 0; n < plan_.splits; ++n) {
      const KeyRange tiles = tiles_of_split(plan_.problem, plan_.geometry, n);
      if (tiles.empty()) continue;
      const std::int64_t cell = cell_of(tiles.end - 1);
      const double m = values_[Tensor::kRunningM][cell];
      const double e = bounds_.running[static_cast<std::size_t>(cell)] + stored_m_error(cell);
      high = e < kInf ? std::max(high, m + e) : kInf;
      low = std::max(low, m - e);
    }
    m_error_ = m_ == -kInf && high == -kInf ? 0 : std::max(high - m_, m_ - low);
    if (!(m_error_ < kInf)) m_error_ = kInf;

    bool first = true;
    for (std::int32_t n = 0; n < plan_.splits; ++n) {
      const KeyRange tiles = tiles_of_split(plan_.problem, plan_.geometry, n);
      const std::int64_t cell = std::int64_t{row_} * plan_.splits + n;
      if (!tiles.empty()) {
        error_l_ = 0;
        error_o_.setZero();
        run_split(tiles);
        merge_split(tiles.end - 1, cell, first);
        first = false;
      }
      bounds_[Tensor::kMergedL][cell] = merged_l_;
      to_recorded_frame(shift(m_error_), values_[Tensor::kMergedL] + cell,
                        bounds_[Tensor::kMergedL] + cell, 1);
      if (!plan_.pv) continue;
      RowOut(bounds_[Tensor::kMergedO] + cell * dim_, dim_) = merged_o_;
      to_recorded_frame(shift(m_error_), values_[Tensor::kMergedO] + cell * dim_,
                        bounds_[Tensor::kMergedO] + cell * dim_, dim_);
    }
  }

  // Adds the split that ends with KV tile `last` to the errors of the merge. A split that has seen
  // nothing adds exactly 0.
  void merge_split(std::int32_t last, std::int64_t merged_cell, bool first) {
    const std::int64_t cell = cell_of(last);
    if (!plan_.geometry.has_split_merge) {
      merged_l_ = error_l_;
      merged_o_ = error_o_;
      return;
    }
    const double e = bounds_.running[static_cast<std::size_t>(cell)];
    const double m = values_[Tensor::kRunningM][cell];
    if (m == -kInf && e == 0 && m_error_ < kInf) return;
    const Factor w = between(m, m_, e, m_error_, stored_m_error(cell));
    const double before_l = first ? 0 : values_[Tensor::kMergedL][merged_cell - 1];
    const double l = values_[Tensor::kRunningL][cell];
    const Rounding& stats = model_.stats;
    double stored_l = stats.u * (l + error_l_) + stats.tiny * exp_above(shift(e));
    if (stats.u > 0 &&
        !(error_l_ <= kLargestLError * l && (l + error_l_) * exp_above(shift(e)) <= stats.largest))
      stored_l = kInf;
    merged_l_ = step_of(model_, kOne, w, !first)(merged_l_, before_l, error_l_ + stored_l, l,
                                                 values_[Tensor::kMergedL][merged_cell]);
    if (!plan_.pv) return;
    // The accumulator is stored in the type of the partials before it is weighted.
    const Rounding& store = model_.partial;
    Factor stored = w;
    stored.relative = w.relative * (1 + store.u) + store.u;
    stored.absolute = w.absolute * (1 + store.u);
    Step step = step_of(model_, kOne, stored, !first);
    step.absolute += 2 * store.tiny * exp_above(shift(e)) * step.part_error;
    const double* accumulator = values_[Tensor::kRunningO] + cell * dim_;
    const double grow = exp_above(shift(e));
    for (Eigen::Index d = 0; d < dim_; ++d)
      if (!((std::fabs(accumulator[d]) + error_o_[d]) * grow <= store.largest)) error_o_[d] = kInf;
    add(step, error_o_.data(), accumulator,
        first ? nullptr : values_[Tensor::kMergedO] + (merged_cell - 1) * dim_,
        values_[Tensor::kMergedO] + merged_cell * dim_, merged_o_);
    if (bounds_.abs_partial_o.empty()) return;
    // Parts of the tile are stored and added, however it is cut: sum |part| <= sum p |v|.
    const double parts = plan_.geometry.num_splits;
    const double* abs = bounds_.abs_partial_o.data() + cell * dim_;
    for (Eigen::Index d = 0; d < dim_; ++d)
      merged_o_[d] += step.part_error * ((store.u + gamma(parts, model_.op.u)) * abs[d] * grow +
                                         2 * parts * store.tiny * grow);
  }

  void output() {
    if (plan_.arithmetic.part == Part::kFromProbs) merged_l_ = 0;  // nothing is divided by l
    const double l = values_.last_l[static_cast<std::size_t>(row_)];
    double* lse = bounds_[Tensor::kLse] + row_;
    if (m_ == -kInf && m_error_ == 0) {  // no visible key: o = 0 and lse = -inf, exactly
      *lse = 0;
      if (plan_.pv) RowOut(bounds_[Tensor::kO] + row_ * dim_, dim_).setZero();
      return;
    }
    const bool hopeless = !(merged_l_ < l) || !(m_error_ < kInf);
    const double u = model_.op.u;
    const double log_l = -std::log1p(-merged_l_ / l);  // error of ln l from the error of l
    const double size = std::fabs(std::log(l)) + log_l + m_error_;
    const double error = log_l + model_.declared.log_abs +
                         model_.declared.log_ulp * 0x1p-24 * std::max(size, 0x1p-126) +
                         (isolate_ ? m_error_ : 0);
    *lse = hopeless ? kInf : kRoom * (error + u * (std::fabs(values_[Tensor::kLse][row_]) + error));
    if (!plan_.pv) return;
    const double* o = values_[Tensor::kO] + row_ * dim_;
    double* bound = bounds_[Tensor::kO] + row_ * dim_;
    const Rounding& store = model_.output;
    for (Eigen::Index d = 0; d < dim_; ++d) {
      const double size_o = std::fabs(o[d]);
      double e = (merged_o_[d] + size_o * merged_l_) / (l - merged_l_);
      e += gamma(2, u) * (size_o + e) + 2 * model_.op.tiny;  // a division, or 1/l and a product
      e += store.u * (size_o + e) + store.tiny;
      bound[d] = !hopeless && size_o + e <= store.largest ? e * kRoom : kInf;
    }
  }

  const Plan& plan_;
  const ErrorModel& model_;
  const BlockValues& values_;
  BlockBounds& bounds_;
  const std::int32_t row_;
  const bool isolate_;
  const Eigen::Index dim_;
  double m_ = 0, m_error_ = 0;
  double error_l_ = 0, merged_l_ = 0;               // errors in the exact frame
  Eigen::ArrayXd error_o_, merged_o_, part_error_;  // (head_dim_v), likewise
};

}  // namespace

void bound_reduce(const Plan& plan, const ErrorModel& model, const BlockValues& values,
                  std::int32_t row, BlockBounds& bounds) {
  RowReduce(plan, model, values, row, bounds).run();
}

}  // namespace attn_diag::reference

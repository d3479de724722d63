// The pipeline of one row under a deviation. Each step is a file of its own; all of them work on a
// RowState and ask the deviation at the places where a known bug may sit.
//
//   scores      scores.cc       q, k          -> s
//   softmax     softmax.cc      s             -> m, p, l of every tile
//   product     product_pv.cc   p, v          -> partial_o of every tile
//   reduce      recurrence.cc   m, l, partial_o -> running_*
//               merge.cc        running_*     -> merged_*, o, lse
#pragma once

#include <cstdint>
#include <vector>

#include "attn_diag/reference/counterfactual.h"
#include "reference/counterfactual/case_data.h"
#include "reference/counterfactual/row_state.h"
#include "reference/mask.h"
#include "reference/rounding.h"

namespace attn_diag::reference {

// Rows of K or V in the order of slots.
struct RowsView {
  const double* data = nullptr;
  std::int64_t stride = 0;
};

class Evaluator {
 public:
  // The steps up to and including the last one that `tensors` needs are run.
  Evaluator(const Case::Data& c, const Deviation& deviation, std::uint32_t tensors);

  void evaluate(const Row& row, RowState& state);

 private:
  void scores(const Row& row, RowState& state);
  void softmax(const Row& row, RowState& state);
  void product(const Row& row, RowState& state);
  void recurrence(RowState& state);
  void merge(RowState& state);
  void finish(RowState& state);

  void enter_head(std::int32_t batch, std::int32_t head);
  // The kernel's tile of `key`; slots of tile t.
  KeyRange slots_of_tile(std::int32_t tile) const { return keys_of_tile(p_, g_, tile); }
  KeyRange counted_keys(std::int32_t query) const;
  // exp in the kernel's range: above its largest number, infinity.
  double exp_in_range(double x) const;
  double in_range(double x) const;
  double rescale(Rescale how, double from, double to) const;

  const Case::Data& c_;
  const Problem& p_;
  const Geometry& g_;
  const Deviation& d_;
  const ErrorModel model_;
  const std::int32_t tiles_, dim_v_;
  bool needs_softmax_ = false, needs_pv_ = false, needs_reduce_ = false;
  double scale_ = 0;             // softmax_scale with the deviation's factor
  double relative_s_error_ = 0;  // of |q||k| scale
  std::int32_t batch_ = -1, head_ = -1;
  RowsView k_, v_;
  std::vector<double> k_norms_;  // per slot
  std::vector<double> scratch_;
};

}  // namespace attn_diag::reference

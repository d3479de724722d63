// The pipeline of one row under a deviation. Each step is a file of its own; all of them work on a
// RowState and ask the deviation at the places where a known bug may sit.
//
//   view_of     tile_view.cc    mask          -> which slots of a tile count
//   scores      scores.cc       q, k          -> s
//   softmax     softmax.cc      s             -> m, p, l of every tile
//   product     product_pv.cc   p, v          -> partial_o of every tile
//   recurrence  recurrence.cc   m, l, partial_o -> running_*
//   merge       merge.cc        running_*     -> merged_*
//   finish      finish.cc       merged_*      -> o, lse
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attn_diag/reference/counterfactual.h"
#include "reference/counterfactual/fetch.h"
#include "reference/counterfactual/prediction_inputs_data.h"
#include "reference/counterfactual/row_state.h"
#include "reference/counterfactual/slots.h"
#include "reference/mask.h"
#include "reference/rounding.h"

namespace attn_diag::reference {

struct LaneScales;  // lane_maxima.h

// The bound of what rounding leaves open: beyond any number.
inline constexpr double kNothingKnown = 1e30;

// Rows of K or V in the order of slots.
struct RowsView {
  const double* data = nullptr;
  std::int64_t stride = 0;
  const std::vector<std::uint8_t>* known = nullptr;  // per slot; null: all
  const double* norms = nullptr;                     // per slot; null: not at hand
};

class Evaluator {
 public:
  // The steps up to and including the last one that `tensors` needs are run.
  Evaluator(const PredictionInputs::Data& c, const Deviation& deviation, std::uint32_t tensors);

  // Evaluates `row` under the deviation, whether or not the deviation's place holds the row.
  void evaluate(const RowIndex& row, RowState& state);

  const Slots& slots() const { return slots_; }

 private:
  // Another row of the tile or fragment, up to softmax.
  const RowState& lent(const RowIndex& row);
  std::shared_ptr<RowState> lent_anew(const RowIndex& row);

  void enter_row(const RowIndex& row);
  void enter_head(std::int32_t batch, std::int32_t head);
  bool is_right_on(std::int32_t query, std::int32_t tile) const;
  void take_right_scores(const RowIndex& row, RowState& state);
  void take_right_products(const RowIndex& row, RowState& state);
  RowsView view_rows(const Operand& operand, const FetchChange& change, std::int32_t columns,
                     std::shared_ptr<const Gathered>& gathered) const;
  TileView view_of(std::int32_t query, std::int32_t tile) const;
  bool sees_by_fragment(std::int32_t query, std::int32_t key) const;
  void scores(const RowIndex& row, RowState& state);
  void score_slots(const RowIndex& row, KeyRange slots, RowState& state);
  double slope_of(std::int32_t head) const;
  void accumulate_scores(RowState& state) const;
  void permute_scores(const RowIndex& row, KeyRange slots, RowState& state);
  const double* query_row(const RowIndex& row, bool& known);
  void softmax(const RowIndex& row, RowState& state);
  void frames(const RowIndex& row, RowState& state);
  void exp_of_shifted(const double* s, std::size_t n, double most, double shift, double* p) const;
  void flush_probs(KeyRange slots, RowState& state) const;
  double exp_slope() const;
  // Whether sums are rounded to a narrow type. They may then be rounded either way, so that the bounds before it count.
  bool rounds_sums() const {
    return d_.combine.partial != Narrow::kNone || d_.combine.partial_lse != Narrow::kNone ||
           d_.recurrence.accumulator != Narrow::kNone || d_.pv.type != Narrow::kNone;
  }
  double certain_m(std::int32_t tile, const RowState& state) const;
  void probs_of_tile(std::int32_t tile, double rescaling, RowState& state);
  void round_probs(std::int32_t tile, double rescaling, RowState& state) const;
  bool has_one_max(std::int32_t tile, const RowState& state) const;
  void mix_frames(const RowIndex& row, RowState& state);
  void mix_sums(const RowIndex& row, RowState& state);
  void weigh_lanes(RowState& state);
  void sum_in_lane_zero(RowState& state) const;
  // Lanes that have a max of their own (lane_maxima.cc).
  void lane_frames(RowState& state) const;
  const double* shift_lanes(std::int32_t tile, double m, const RowState& state);
  std::size_t lane_of_column(std::size_t d) const;
  std::vector<double> lane_tile_sums(KeyRange slots, std::int32_t first,
                                     const std::vector<double>& x) const;
  void step_lanes(std::size_t tile, const RowState& state, LaneScales& lanes) const;
  void product(const RowIndex& row, RowState& state);
  void permute_probs(const RowIndex& row, RowState& state);
  void take_probs_of(const RowIndex& row, RowState& state);
  void take_frames_of(const RowIndex& row, RowState& state);
  std::vector<std::int32_t> mixed_queries(const MixedRows& mixed, std::int32_t query) const;
  void overflow_probs(RowState& state) const;
  void delay_probs(RowState& state) const;
  void add_narrow(std::int32_t tile, const std::vector<double>& weights, RowState& state) const;
  void accumulate_product(std::int32_t tile, RowState& state) const;
  void add_errors_of_parts(const std::vector<double>& weights, KeyRange slots, double* error) const;
  void begin(const RowIndex& row);
  struct Chain {
    std::int32_t place, step;
  };
  Chain chain_of(const RowIndex& row) const;
  RowIndex row_at(const RowIndex& row, std::int32_t place) const;
  const Running& left_before(const RowIndex& row);
  Running last_of(const RowState& s) const;
  void take_given(const RowIndex& row, RowState& state) const;
  struct Loop;
  // Rows of the query tile that have to do with a row's alpha (alphas_of_others.cc).
  struct Others {
    const RowState* row;                 // whose alpha is used
    std::vector<const RowState*> group;  // those besides it that have a say
    bool strange = false;                // a row that does not exist is among them
  };
  struct GroupsAlpha {
    double value = 1, error = 0;
  };
  Others others_of(const RowIndex& row, const RowState& state);
  GroupsAlpha alpha_of_group(std::size_t tile, const Others& others, double before,
                             double now) const;
  void step(std::size_t tile, const Others& others, RowState& state, Loop& loop);
  static std::int32_t last_visited(std::size_t first, std::size_t end, const RowState& state);
  void multiply_sums(RowState& state) const;
  void recurrence(const RowIndex& row, RowState& state);
  std::size_t tile_visited_twice(std::size_t first, std::size_t end, const RowState& state) const;
  void begin_with_l(const RowState& state, Running& now) const;
  struct Share;
  Share share_of(const RowState& sums, const RowState& accumulators, std::int32_t l_split,
                 std::int32_t o_split) const;
  void mix_shares(const RowIndex& row, std::vector<Share>& shares);
  void merge(const RowIndex& row, RowState& state);
  struct Carried;
  Carried carried_through(const std::vector<Share>& shares, double total_m) const;
  void round_shares(std::vector<Share>& shares) const;
  void add_stale(const Share& share, double n, RowState& state) const;
  void merged_lse(const std::vector<Share>& shares, RowState& state);
  void count_besides(double n, double lse, RowState& state) const;
  void finish(const RowIndex& row, RowState& state);
  void finish_empty(const RowIndex& row, RowState& state);
  double lse_of(double m, double l) const;
  void take_divisor(const RowState& state, double& divisor, double& error) const;
  // The state of another row, before any merge, under what is left of the deviation.
  const RowState& foreign(const RowIndex& row, std::size_t slot = 0);
  // Which row's and split's partial is taken for one.
  std::pair<RowIndex, std::int32_t> partial_read(const RowIndex& row, std::int32_t split) const;
  // l of every lane, from P of the whole row in the frame of its total.
  std::vector<double> lane_sums(const RowState& state) const;
  std::vector<double> sums_of_splits(const std::vector<double>& of_splits) const;
  std::vector<double> reduced(std::vector<double> x) const;
  static std::vector<double> shuffled_down(std::vector<double> x);

  // exp in the kernel's range: above its largest number, infinity.
  double exp_in_range(double x) const;
  double exp_at(ExpPlace place, double x) const;
  double in_range(double x) const;
  // The rounding error of the factors that rescale sums while m changes by `change` in `steps` steps.
  double rescale_error(double change, double steps = 1) const;
  double rescale(Rescale how, double from, double to, ExpPlace place = kExpOfAlpha) const;
  // The query of the row that is chosen for one; -1 where there is none.
  std::int32_t chosen_query(const RowChoice& choice, std::int32_t query) const;

  const PredictionInputs::Data& c_;
  const Problem& p_;
  const Geometry& g_;
  const Deviation d_;
  const ErrorModel model_;
  const std::shared_ptr<const Slots> shared_slots_;
  const Slots& slots_;
  const std::int32_t tiles_, dim_v_;
  const std::uint32_t tensors_;
  bool needs_softmax_ = false, needs_pv_ = false, needs_reduce_ = false;
  std::int32_t columns_ = 0;     // of q.k
  double scale_ = 0;             // softmax_scale with the deviation's factor
  double relative_s_error_ = 0;  // of |q||k| scale
  std::int32_t batch_ = -1, head_ = -1;
  KeyRange view_loop_;  // the loop that k_ and v_ were read in, where that makes a difference
  RowsView k_, v_;
  std::shared_ptr<const Gathered> gathered_k_, gathered_v_;
  Gathered gathered_q_;
  std::vector<double> scaled_q_;
  std::vector<double> k_norms_;                       // per slot
  std::map<std::int32_t, std::vector<double>> dots_;  // q.k of whole rows, by query, of this head
  std::map<std::int32_t, std::shared_ptr<const RowState>> lent_;  // by query, of this head
  std::optional<bool> lends_right_rows_;
  bool lending_ = false;         // the row under way is one that is lent
  Running before_;               // the state that the row begins with
  std::vector<double> shifted_;  // scores of a tile
  // What the last row of each chain left behind, and who evaluates them.
  struct Left {
    std::int32_t place = -1;
    Running state;
  };
  std::map<std::pair<std::int32_t, std::int32_t>, Left> left_;
  std::int32_t left_batch_ = -1, left_head_ = -1;
  RowState left_state_;
  std::unique_ptr<Evaluator> chain_;
  bool in_chain_ = false;
  // What is right, where the deviation is on some tiles only.
  std::unique_ptr<Evaluator> right_;
  RowState right_state_;
  // Where rows of other heads or query tiles lend their state.
  std::unique_ptr<Evaluator> foreign_evaluator_;
  std::deque<RowState> foreign_states_;  // one for each row that is needed at a time
};

}  // namespace attn_diag::reference

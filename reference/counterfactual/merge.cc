// The merge of the splits of one row.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/narrow.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
namespace {

double factor_of(const CombineChange& change, std::size_t split) {
  const double one = static_cast<std::int32_t>(split) == change.scaled_split ? change.factor : 1;
  return split < kWeightedSplits ? one * change.factors[split] : one;
}

}  // namespace

// A split's share as the merge reads it.
struct Evaluator::Share {
  double m = -kInf, m_error = 0, l = 0, l_error = 0;
  const double* o = nullptr;  // null: nothing but zeros
  const double* o_error = nullptr;
  double o_factor = 1;  // of both
  double o_lost = 0;    // relative error of the weight of o
  bool known = true, o_known = true;
};

struct Evaluator::Carried {
  std::vector<double> o, l;  // of every split; empty: right
};

Evaluator::Share Evaluator::share_of(const RowState& sums, const RowState& accumulators,
                                     std::int32_t l_split, std::int32_t o_split) const {
  Share share;
  if (d_.recurrence.first_l != 0) {
    share.m = d_.softmax.m_floor;
    share.l = d_.recurrence.first_l;
  }
  const KeyRange l_tiles = tiles_of_split(p_, g_, l_split);
  const KeyRange o_tiles = tiles_of_split(p_, g_, o_split);
  if (!l_tiles.empty()) {
    const auto last = static_cast<std::size_t>(l_tiles.end - 1);
    share.m = sums.running_m[last];
    share.m_error = sums.running_m_error[last];
    share.l = sums.running_l[last];
    share.l_error = sums.running_l_error[last];
    share.known = sums.running_known[last] != 0;
  }
  if (!o_tiles.empty()) {
    const auto last = static_cast<std::size_t>(o_tiles.end - 1);
    const auto dim = accumulators.running_o.size() / accumulators.running_m.size();
    share.o = accumulators.running_o.data() + last * dim;
    share.o_error = accumulators.running_o_error.data() + last * dim;
    share.o_known = accumulators.running_o_known[last] != 0;
  }
  return share;
}

// When the loop is over, every row of a group gets the sum over all of them.
void Evaluator::mix_shares(const RowIndex& row, std::vector<Share>& shares) {
  const MixedRows& mixed = d_.finish.mixed;
  const std::vector<std::int32_t> queries = mixed_queries(mixed, row.query);
  for (std::size_t n = 0; n < shares.size(); ++n) {
    Share& share = shares[n];
    const auto split = static_cast<std::int32_t>(n);
    std::vector<Share> parts;
    const double own_m = share.m;
    for (const std::int32_t i : queries) {
      // Rows past the last query hold what nobody knows.
      if (i >= p_.seqlen_q) {
        share.known = false;
        continue;
      }
      const RowState& other = lent({row.batch, row.head, i});
      parts.push_back(share_of(other, other, split, split));
      if (!mixed.max) continue;
      share.m = std::max(share.m, parts.back().m);
      share.m_error = std::max(share.m_error, parts.back().m_error);
    }
    share.l = share.l_error = 0;
    for (const Share& part : parts) {
      const double w = mixed.times * (mixed.max ? rescale(Rescale::kRight, part.m, share.m) : 1);
      share.l += w * part.l;
      share.l_error += w * part.l_error;
      share.known = share.known && part.known;
    }
    share.o_factor = mixed.max ? rescale(Rescale::kRight, own_m, share.m) : 1;
  }
}

void Evaluator::merge(const RowIndex& row, RowState& state) {
  const CombineChange& change = d_.combine;
  const auto splits = static_cast<std::size_t>(g_.num_splits);
  const auto dim = needs_pv_ && !lending_ ? static_cast<std::size_t>(dim_v_) : 0;
  state.merged_l.resize(splits);
  state.merged_l_error.resize(splits);
  state.split_l.resize(splits);
  state.split_l_error.resize(splits);
  state.merged_o.resize(splits * dim);
  state.merged_o_error.resize(splits * dim);
  state.o.assign(dim, 0.0);
  state.o_error.assign(dim, 0.0);
  state.l_known = state.o_known = true;
  state.lse_known = true;

  std::vector<Share> shares;
  std::vector<std::pair<RowIndex, const RowState*>> others;
  for (std::int32_t n = 0; n < g_.num_splits; ++n) {
    const auto [from, read] = lending_ ? std::pair{row, n} : partial_read(row, n);
    if (read < 0) {
      shares.push_back(share_of(state, state, n, n));
      (change.map_o_only ? shares.back().o_known : shares.back().known) = false;
      continue;
    }
    const RowState* other = from == row ? &state : nullptr;
    for (const auto& [known, its_state] : others)
      if (known == from) other = its_state;
    if (other == nullptr) {
      other = &foreign(from, others.size());
      others.emplace_back(from, other);
    }
    shares.push_back(change.map_o_only      ? share_of(state, *other, n, read)
                     : change.map_sums_only ? share_of(*other, state, read, n)
                                            : share_of(*other, *other, read, read));
  }
  if (d_.finish.mixed.present() && !lending_) mix_shares(row, shares);
  state.total_m = -kInf;
  state.total_m_error = 0;
  const auto counts = [&](std::size_t n) {
    const auto split = static_cast<std::int32_t>(n);
    return (change.only_split < 0 || split == change.only_split) &&
           (factor_of(change, n) != 0 || change.factors_o_only || change.factors_l_only);
  };
  for (std::size_t n = 0; n < splits; ++n) {
    const Share& share = shares[n];
    state.l_known = state.l_known && share.known;
    state.o_known = state.o_known && share.known && share.o_known;
    if (change.max_of_counted && !counts(n)) continue;
    state.total_m = std::isnan(share.m) ? share.m : std::max(state.total_m, share.m);
    state.total_m_error = std::max(state.total_m_error, share.m_error);
  }
  const Rounding& store = model_.partial;
  const Carried carried = carried_through(shares, state.total_m);
  round_shares(shares);
  double l = 0, l_error = 0;
  for (std::size_t n = 0; n < splits; ++n) {
    const Share& share = shares[n];
    // Where splits differ in their base, m of all is right.
    const bool differ = change.only_splits != 0;
    const bool has_base = !differ || (n < 32 && (change.only_splits >> n & 1) != 0);
    const double max_factor = has_base ? change.max_factor : 1;
    const double o_power = has_base ? change.o_power : 0, l_power = has_base ? change.l_power : 1;
    const auto weight = [&](double factor) {
      const double x =
          differ ? factor * share.m - state.total_m : factor * (share.m - state.total_m);
      return factor == 0 ? 1 : share.m == -kInf ? 0 : exp_at(kExpOfMerge, x);
    };
    double w = weight(change.max_factor_l ? max_factor : 1);
    double w_of_o = weight(change.max_factor_o ? max_factor : 1);
    if (!carried.l.empty()) {
      w = carried.l[n];
      w_of_o = carried.o[n];
    }
    if (!change.factors_o_only) w *= factor_of(change, n);
    if (!change.factors_l_only) w_of_o *= factor_of(change, n);
    if (!counts(n) || (change.skips_zero_l && share.l == 0)) w = w_of_o = 0;
    // Weights that hold l or m in another way than the frames do keep their errors.
    const double relative_l = share.l != 0 ? share.l_error / std::fabs(share.l) : 0;
    const double w_error =
        share.m == -kInf
            ? 0
            : std::fabs(max_factor - 1) *
                  (share.m_error +
                   model_.op.u * (differ ? std::fabs(share.m) + std::fabs(state.total_m)
                                         : std::fabs(share.m - state.total_m)));
    // ... and so do those of sums whose own error was rounded away.
    const bool rounded = rounds_sums();
    double rounded_error = rounded ? 3 * model_.op.u : 0;
    if (rounded && share.m > -kInf && share.m < state.total_m)
      rounded_error += rescale_error(share.m - state.total_m) + share.m_error + state.total_m_error;
    const double o_factor = share.l != 0 || o_power == 0 ? std::pow(share.l, o_power) : 0;
    const double l_factor = share.l != 0 || l_power == 0 ? std::pow(share.l, l_power) : 0;
    state.split_l[n] = w * l_factor;
    state.split_l_error[n] =
        std::fabs(w) * (l_power == 1 ? share.l_error : l_factor * std::fabs(l_power) * relative_l) +
        (w_error > 0 ? std::fabs(w) * l_factor * w_error : 0);
    l += state.split_l[n];
    l_error += state.split_l_error[n];
    if (share.o != nullptr && w_of_o * o_factor != 0) {
      const double relative =
          w_error + share.o_lost + rounded_error + std::fabs(o_power) * relative_l;
      for (std::size_t d = 0; d < dim; ++d) {
        double part = share.o_factor * share.o[d], error = share.o_factor * share.o_error[d];
        if (change.partial_divided && share.l > 0) {
          part /= share.l;
          error = error / share.l + std::fabs(part) * relative_l;
          round_both(change.partial, part, error);
          part *= share.l;
          error *= share.l;
        } else {
          round_both(change.partial, part, error);
        }
        error += store.u * std::fabs(part) + store.tiny + relative * std::fabs(part);
        state.o[d] += w_of_o * o_factor * part;
        state.o_error[d] += std::fabs(w_of_o) * o_factor * error;
      }
    }
    if (d_.softmax.empty == EmptyRow::kNanOfSplit && share.l == 0)
      std::fill(state.o.begin(), state.o.end(), kNan);
    state.merged_l[n] = l;
    state.merged_l_error[n] = l_error;
    std::copy_n(state.o.data(), dim, state.merged_o.data() + n * dim);
    std::copy_n(state.o_error.data(), dim, state.merged_o_error.data() + n * dim);
  }
  state.total_l = l;
  state.total_l_error = l_error;
  if (change.sinks != 0) {
    const auto with_keys = std::count_if(shares.begin(), shares.end(),
                                         [](const Share& share) { return share.m > -kInf; });
    count_besides(change.sinks * (change.sinks_of_splits ? static_cast<double>(with_keys) : 1), 0,
                  state);
  }
  if (change.extra != ExtraSplit::kNone) {
    const auto empty = [](const Share& share) { return share.m == -kInf; };
    const auto n =
        change.extra == ExtraSplit::kEmpty ? 1 : std::count_if(shares.begin(), shares.end(), empty);
    if (n > 0) {
      count_besides(static_cast<double>(n), change.extra_lse, state);
      if (change.stale_split >= 0)
        add_stale(shares[static_cast<std::size_t>(change.stale_split)], static_cast<double>(n),
                  state);
      if (change.nan_of_infinite) std::fill(state.o.begin(), state.o.end(), kNan);
    }
  }
  merged_lse(shares, state);
}

// The factors of every split's l and o in the end, where the merge takes one split after another.
Evaluator::Carried Evaluator::carried_through(const std::vector<Share>& shares,
                                              double total_m) const {
  const CombineChange& change = d_.combine;
  Carried carried;
  if (change.online == OnlineMerge::kNone) return carried;
  const bool divided = change.online == OnlineMerge::kDivided;
  double before = -kInf;
  for (const Share& share : shares) {
    // The frame of o divided by l so far is lse so far; that of l is m.
    const double own = share.l > 0 ? share.m + (divided ? std::log(share.l) : 0) : -kInf;
    const double most = std::max(before, own);
    double now = most;
    if (divided && most > -kInf)
      now = most + std::log(std::exp(before - most) + std::exp(own - most));
    for (double& x : carried.o) x *= rescale(change.alpha_o, before, now, kExpOfMerge);
    for (double& x : carried.l) x *= rescale(change.alpha_l, before, now, kExpOfMerge);
    const double beta_o = own == -kInf ? 0 : rescale(change.beta_o, own, now, kExpOfMerge);
    const double beta_l = own == -kInf ? 0 : rescale(change.beta_l, own, now, kExpOfMerge);
    carried.o.push_back(divided && share.l > 0 ? beta_o / share.l : beta_o);
    carried.l.push_back(beta_l);
    before = now;
  }
  if (!divided) return carried;
  // l is right, and o is as if it had been divided by it.
  double l = 0;
  for (std::size_t n = 0; n < shares.size(); ++n) {
    carried.l[n] = shares[n].m == -kInf ? 0 : std::exp(shares[n].m - total_m);
    l += carried.l[n] * shares[n].l;
  }
  for (double& x : carried.o) x *= l;
  return carried;
}

// What is rounded between the two kernels besides the accumulators.
void Evaluator::round_shares(std::vector<Share>& shares) const {
  const CombineChange& change = d_.combine;
  for (Share& share : shares) {
    if (share.l <= 0) continue;
    if (model_.stats.u > 0) {  // what m, l or the lse of a split lose as declared
      const double lost =
          model_.stats.u * (std::fabs(share.m) + std::fabs(std::log(share.l))) + model_.stats.tiny;
      share.m_error += lost;
      share.l_error += share.l * (lost + model_.stats.u) + model_.stats.tiny;
      share.o_lost = lost;
    }
    round_both(change.partial_l, share.l, share.l_error);
    round_both(change.partial_m, share.m, share.m_error);
    if (change.partial_m != Narrow::kNone) {
      share.l_error += share.l * share.m_error;
      share.o_lost += share.m_error;
    }
    if (change.partial_lse == Narrow::kNone) continue;
    const double right = share.m + std::log(share.l);
    double lse = right, error = share.m_error + share.l_error / share.l;
    round_both(change.partial_lse, lse, error);
    // Both sums have e^lse for a weight.
    share.m += lse - right;
    share.m_error = error;
    share.l_error += share.l * error;
    share.o_lost += error;
  }
}

void Evaluator::add_stale(const Share& share, double n, RowState& state) const {
  if (share.o == nullptr || share.l == 0) return;
  if (std::isinf(d_.combine.extra_lse)) {  // it has all the weight
    const double by = d_.combine.stale_divided ? share.l : 1;
    const double by_error = d_.combine.stale_divided ? share.l_error / share.l + model_.op.u : 0;
    for (std::size_t d = 0; d < state.o.size(); ++d) {
      state.o[d] = share.o[d] / by;
      state.o_error[d] = share.o_error[d] / by + std::fabs(state.o[d]) * by_error;
    }
    state.total_m = d_.combine.extra_lse;
    state.total_l = 1;
    state.total_m_error = state.total_l_error = 0;
    return;
  }
  const double x = d_.combine.extra_lse - state.total_m;
  const double w = n * exp_in_range(x) / (d_.combine.stale_divided ? share.l : 1);
  const double error = rescale_error(x) + state.total_m_error +
                       (d_.combine.stale_divided ? share.l_error / share.l : 0);
  for (std::size_t d = 0; d < state.o.size(); ++d) {
    state.o[d] += w * share.o[d];
    state.o_error[d] += w * (share.o_error[d] + std::fabs(share.o[d]) * error);
  }
}

// What is in l and not in o: n times e^lse.
void Evaluator::count_besides(double n, double lse, RowState& state) const {
  if (state.total_m == -kInf) {
    state.total_m = lse;
    state.total_l = n;
    return;
  }
  const double x = lse - state.total_m, more = n * exp_in_range(x);
  state.total_l += more;
  if (std::isinf(more)) return;
  const Arithmetic& declared = model_.declared;
  state.total_l_error +=
      more * (state.total_m_error + 2 * model_.op.u + declared.exp_ulp * 0x1p-24 +
              (declared.exp_ulp_per_x * 0x1p-24 + model_.op.u) * std::fabs(x));
}

// What lse is made of: (m, l), which need not be what o is made of.
void Evaluator::merged_lse(const std::vector<Share>& shares, RowState& state) {
  state.lse_m = state.total_m;
  state.lse_l = state.total_l;
  const double kappa = d_.combine.max_factor;
  double right = 0, largest = -kInf;
  for (const Share& share : shares) {
    if (share.l == 0) continue;
    right += rescale(Rescale::kRight, share.m, state.total_m) * share.l;
    largest = std::max(largest, share.m + std::log(share.l));
  }
  switch (d_.combine.lse) {
    case MergedLse::kOfSums:
      break;
    case MergedLse::kRight:
      state.lse_l = right;
      break;
    case MergedLse::kOverBase:
      state.lse_l = std::pow(state.total_l, 1 / kappa);
      break;
    case MergedLse::kOfWeights:
      state.lse_m = kappa * state.total_m;
      state.total_m_error *= kappa;
      break;
    case MergedLse::kOfLargest:
      state.lse_m = largest;
      state.lse_l = state.total_l * std::exp(-kappa * (largest - state.total_m));
      break;
  }
}

}  // namespace attn_diag::reference

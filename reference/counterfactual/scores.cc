// S of one row: q.k, its factor, softcap, bias, the mask; and how far rounding may take it.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/fragment.h"
#include "reference/counterfactual/narrow.h"
#include "reference/counterfactual/weighted_rows.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
namespace {

// Rounds every `every` columns, as an accumulator of that type does.
// `step` is the error of adding one part, beside the rounding to `type`: it may decide each of these.
void dot_narrow(const double* q, const double* k, std::int32_t columns, std::int32_t every,
                Narrow type, double step, double& s, double& error) {
  s = 0;
  error = 0;
  for (std::int32_t d = 0; d < columns; d += every) {
    double part = 0;
    for (std::int32_t i = d; i < std::min(d + every, columns); ++i) part += q[i] * k[i];
    s += part;
    error += step;
    round_both(type, s, error);
  }
}

// Sum of |q_d k_d|; |q||k| is an upper bound of it.
double size_of_dot(const double* q, const double* k, std::int32_t columns) {
  double size = 0;
  for (std::int32_t d = 0; d < columns; ++d) size += std::fabs(q[d] * k[d]);
  return size;
}

double bias_of_place(DistanceBias bias, std::int32_t query, std::int32_t key) {
  switch (bias) {
    case DistanceBias::kNone:
      break;
    case DistanceBias::kKeyMinusQuery:
      return key - query;
    case DistanceBias::kMinusDistance:
      return -std::abs(key - query);
    case DistanceBias::kKey:
      return key;
  }
  return 0;
}

// d(out)/d(in) is at most 1 in magnitude for every form, but for s tanh(s): 1 + |s|, and for s times the right
// tanh.
double cap(SoftcapChange change, double softcap, double s, double& error) {
  switch (change) {
    case SoftcapChange::kMissing:
      return s;
    case SoftcapChange::kTimesTanh:
      error *= 1 + std::fabs(s);
      return s * std::tanh(s);
    case SoftcapChange::kNotMultiplied:
      error /= softcap;
      return std::tanh(s / softcap);
    case SoftcapChange::kScoreTimesTanh:
      error *= std::fabs(std::tanh(s / softcap)) + std::fabs(s / softcap);
      return s * std::tanh(s / softcap);
    case SoftcapChange::kRight:
    case SoftcapChange::kAfterMask:
    case SoftcapChange::kAfterMaskBeforeBias:
      break;
  }
  return softcap * std::tanh(s / softcap);
}

}  // namespace

const double* Evaluator::query_row(const RowIndex& row, bool& known) {
  if (d_.q == FetchChange{} && columns_ <= p_.head_dim)
    return c_.q->values.data() + c_.q->row_offset(row.batch, row.head, row.query);
  const FetchRequest request{row.batch, row.head, true, g_.tile.block_m, columns_, {}, {}, 1};
  gather(c_, *c_.q, d_.q, request, std::span(&row.query, 1), gathered_q_);
  known = gathered_q_.all_known;
  return gathered_q_.values.data();
}

// q.k of a fragment whose elements are mixed up: those of other rows and keys, before any mask.
void Evaluator::permute_scores(const RowIndex& row, KeyRange slots, RowState& state) {
  const std::int32_t in_fragment = row.query % g_.tile.block_m % kFragmentSize;
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const KeyRange tile = slots_.of_tile(t), wanted = intersect(tile, slots);
    for (std::int32_t i = wanted.begin; i < wanted.end; ++i) {
      const std::int32_t in_block = (i - tile.begin) % kFragmentSize;
      const FragmentPlace from = fragment_source(d_.logits.fragment, in_fragment, in_block);
      const std::int32_t slot = i - in_block + from.column;
      const std::int32_t query = row.query - in_fragment + from.row;
      double& s = state.s[static_cast<std::size_t>(i)];
      // Past the ends of q and k tiles hold zeros.
      s = 0;
      if (slot >= tile.end || query >= p_.seqlen_q) continue;
      std::vector<double>& dots = dots_[query];
      if (dots.empty()) {
        dots.resize(state.s.size());
        bool known = true;
        dot_rows(query_row({row.batch, row.head, query}, known), k_.data, k_.stride, slots_.size,
                 columns_, dots.data());
      }
      s = dots[static_cast<std::size_t>(slot)];
    }
  }
}

double Evaluator::slope_of(std::int32_t head) const {
  const LogitsChange& change = d_.logits;
  switch (change.slopes) {
    case HeadSlopes::kAlibi:
      return change.bias_slope * std::exp2(-8.0 * (head + 1) / p_.heads);
    case HeadSlopes::kHalves:
      return change.bias_slope * std::exp2(-(head + 1));
    case HeadSlopes::kAlike:
      break;
  }
  return change.bias_slope;
}

// Where the accumulator of q.k is not cleared from tile to tile.
void Evaluator::accumulate_scores(RowState& state) const {
  for (std::int32_t t = 1; t < tiles_; ++t) {
    const bool continues = t % g_.tiles_per_split != 0;
    if (!continues || !state.views[static_cast<std::size_t>(t)].visited ||
        !state.views[static_cast<std::size_t>(t) - 1].visited)
      continue;
    const KeyRange from = slots_.of_tile(t - 1), to = slots_.of_tile(t);
    for (std::int32_t i = 0; i < to.size(); ++i) {
      const auto at = static_cast<std::size_t>(to.begin + i);
      state.s[at] += state.s[static_cast<std::size_t>(from.begin + i)];
      state.s_error[at] += state.s_error[static_cast<std::size_t>(from.begin + i)];
    }
  }
}

// Unmasked scores of a run of slots.
void Evaluator::score_slots(const RowIndex& row, KeyRange slots, RowState& state) {
  if (slots.empty()) return;
  bool q_known = true;
  const LogitsChange& change = d_.logits;
  const double* q = query_row(row, q_known);
  double scale = scale_;
  if (change.scaled_query != Narrow::kNone) {
    scaled_q_.resize(static_cast<std::size_t>(columns_));
    for (std::int32_t d = 0; d < columns_; ++d)
      scaled_q_[static_cast<std::size_t>(d)] = round_to(change.scaled_query, q[d] * scale_);
    q = scaled_q_.data();
    scale = 1;
  }
  if (!q_known || k_.known != nullptr) {
    state.s_known.assign(state.s.size(), q_known ? 1 : 0);
    if (q_known) state.s_known = *k_.known;
  }
  double* s = state.s.data() + slots.begin;
  double* error = state.s_error.data() + slots.begin;
  const double* norms = k_.norms + slots.begin;
  const double* k = k_.data + slots.begin * k_.stride + change.first_column;
  const std::int32_t columns = columns_ - change.first_column;
  q += change.first_column;
  if (change.fragment == FragmentMap::kRight)
    dot_rows(q, k, k_.stride, slots.size(), columns, s);
  else
    permute_scores(row, slots, state);
  double q_norm = 0;
  row_norms(q, columns, 1, columns, &q_norm);
  const double u = model_.op.u, tiny = columns * model_.op.tiny;
  const double relative = relative_s_error_ * std::fabs(scale);
  const bool tight = rounds_sums() && change.fragment == FragmentMap::kRight;
  for (std::int32_t j = 0; j < slots.size(); ++j) {
    s[j] *= scale;
    const double size = tight ? size_of_dot(q, k + j * k_.stride, columns) : q_norm * norms[j];
    error[j] =
        relative * size + (u + model_.scores.u) * std::fabs(s[j]) + tiny + model_.scores.tiny;
  }
  if (change.accumulates) accumulate_scores(state);
  if (change.type != Narrow::kNone) {
    const std::int32_t every = change.rounded_every > 0 ? change.rounded_every : columns;
    for (std::int32_t j = 0; j < slots.size(); ++j) {
      // The products of the part, and its sum with those before.
      const double whole = relative_s_error_ * q_norm * norms[j];
      const double step = whole / std::max(1, columns / every) + whole / columns;
      double e = 0;
      dot_narrow(q, k + j * k_.stride, columns, every, change.type, step, s[j], e);
      s[j] *= scale;
      error[j] = e * std::fabs(scale) + (u + model_.scores.u) * std::fabs(s[j]) + tiny;
    }
  }
  const Extras& extras = c_.extras;
  const float* bias = nullptr;
  if (!extras.bias.empty()) {
    const std::int64_t b = extras.bias_batch > 1 ? row.batch : 0;
    const std::int64_t h = extras.bias_heads > 1 ? row.head : 0;
    bias =
        extras.bias.data() + ((b * extras.bias_heads + h) * p_.seqlen_q + row.query) * p_.seqlen_k;
  }
  const double softcap = change.cap != 0 ? change.cap : extras.softcap;
  const double slope = change.bias == DistanceBias::kNone ? 0 : slope_of(row.head);
  if (bias == nullptr && softcap == 0 && slope == 0 && change.offset == 0) return;
  for (std::int32_t j = 0; j < slots.size(); ++j) {
    const std::int32_t home = slots_.home[static_cast<std::size_t>(slots.begin + j)];
    const double added = bias == nullptr || home < 0 ? 0.0 : change.bias_factor * bias[home];
    if (change.bias_before_cap) s[j] += added;
    if (softcap != 0) s[j] = cap(change.softcap, softcap, s[j], error[j]);
    if (!change.bias_before_cap) s[j] += added;
    if (change.softcap == SoftcapChange::kAfterMaskBeforeBias)
      state.masked_s[static_cast<std::size_t>(slots.begin + j)] = added - softcap;
    const double besides =
        slope * bias_of_place(change.bias, row.query,
                              slots_.position[static_cast<std::size_t>(slots.begin + j)]) +
        change.offset;
    error[j] += 2 * u * std::fabs(besides);
    s[j] += besides;
    // tanh is granted the accuracy of exp.
    error[j] += (model_.declared.exp_ulp * 0x1p-24 + 2 * u) * std::fabs(s[j]);
  }
}

void Evaluator::scores(const RowIndex& row, RowState& state) {
  const auto n = static_cast<std::size_t>(slots_.size);
  state.s.assign(n, -kInf);
  state.s_error.assign(n, 0.0);
  state.s_known.clear();
  state.counted.assign(static_cast<std::size_t>(tiles_), KeyRange{});
  const bool given = c_.has(Tensor::kS);
  const bool unmasked = d_.softmax.l_counts_masked || d_.softmax.o_counts_masked;
  const double softcap = d_.logits.cap != 0 ? d_.logits.cap : c_.extras.softcap;
  const bool biased = d_.logits.softcap == SoftcapChange::kAfterMaskBeforeBias && softcap != 0;
  state.masked_s.assign(biased ? n : 0, -softcap);
  const double masked = (d_.logits.softcap == SoftcapChange::kAfterMask && softcap != 0) || biased
                            ? -softcap
                            : d_.mask.masked_score;
  const double added = d_.mask.masked_added;
  // One product over all that counts anywhere: runs of slots lie side by side in every mask.
  KeyRange hull{slots_.size, 0};
  std::vector<TileView>& views = state.views;
  views.resize(static_cast<std::size_t>(tiles_));
  for (std::int32_t t = 0; t < tiles_; ++t) {
    TileView& view = views[static_cast<std::size_t>(t)] = view_of(row.query, t);
    const bool whole =
        given || unmasked || view.inverted || masked > -kInf || added != 0 || d_.logits.accumulates;
    const KeyRange needed = whole && (view.visited || given) ? view.all : view.counted;
    state.counted[static_cast<std::size_t>(t)] = needed;
    if (needed.empty()) continue;
    hull.begin = std::min(hull.begin, needed.begin);
    hull.end = std::max(hull.end, needed.end);
  }
  if (!given || !slots_.plain || unmasked) score_slots(row, hull, state);
  if (unmasked) state.unmasked_s = state.s;
  const auto hide = [&](std::int32_t begin, std::int32_t end, double score, bool by_mask = true) {
    if (begin >= end) return;
    if (added != 0 && by_mask) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        state.s[i] += added;
        state.s_error[i] += model_.op.u * std::fabs(state.s[i]);
      }
      return;
    }
    std::fill(state.s_error.data() + begin, state.s_error.data() + end, 0.0);
    if (biased && by_mask) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        state.s[i] = state.masked_s[i];
        state.s_error[i] = 2 * model_.op.u * std::fabs(state.s[i]);
      }
      return;
    }
    std::fill(state.s.data() + begin, state.s.data() + end, score);
  };
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const TileView& view = views[static_cast<std::size_t>(t)];
    if (!view.visited) {
      hide(view.all.begin, view.all.end, -kInf, false);
    } else if (view.inverted) {
      hide(view.counted.begin, view.counted.end, masked);
    } else if (view.by_fragment) {
      for (std::int32_t i = view.all.begin; i < view.all.end; ++i)
        if (!sees_by_fragment(row.query, slots_.position[static_cast<std::size_t>(i)]))
          hide(i, i + 1, masked);
    } else {
      hide(view.all.begin, std::min(view.counted.begin, view.all.end), masked);
      hide(std::max(view.counted.begin, view.counted.end), view.all.end, masked);
    }
  }
  if (d_.logits.scores != Narrow::kNone)
    for (std::size_t i = 0; i < n; ++i)
      if (std::isfinite(state.s[i])) round_both(d_.logits.scores, state.s[i], state.s_error[i]);
  if (!given) return;
  const float* recorded = c_.given_row(Tensor::kS, row);
  for (std::size_t i = 0; i < n; ++i)
    if (slots_.home[i] >= 0) {
      state.s[i] = recorded[slots_.home[i]];
      state.s_error[i] = 0;
    }
}

}  // namespace attn_diag::reference

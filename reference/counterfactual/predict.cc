#include <algorithm>
#include <optional>
#include <span>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/store.h"

namespace attn_diag::reference {
namespace {

struct Cells {
  const std::vector<double>*value, *error;
  const std::vector<std::uint8_t>* known;  // per slot or tile; null: as the row
};

Cells cells_of(const RowState& s, Tensor t) {
  switch (t) {
    case Tensor::kS:
      return {&s.s, &s.s_error, &s.s_known};
    case Tensor::kM:
      return {&s.m, &s.m_error, &s.softmax_known};
    case Tensor::kL:
      return {&s.l, &s.l_error, &s.softmax_known};
    case Tensor::kP:
      return {&s.p, &s.o_weight, &s.softmax_known};
    case Tensor::kPartialO:
      return {&s.partial_o, &s.partial_o_error, &s.product_known};
    case Tensor::kRunningM:
      return {&s.running_m, &s.running_m_error, &s.running_known};
    case Tensor::kRunningL:
      return {&s.running_l, &s.running_l_error, &s.running_known};
    case Tensor::kRunningO:
      return {&s.running_o, &s.running_o_error, &s.running_o_known};
    case Tensor::kMergedL:
      return {&s.merged_l, &s.merged_l_error, nullptr};
    case Tensor::kMergedO:
      return {&s.merged_o, &s.merged_o_error, nullptr};
    case Tensor::kO:
    case Tensor::kLse:
      break;
  }
  return {&s.o, &s.o_error, nullptr};
}

// One row of one tensor, where to put it.
struct Target {
  double *value, *bound;
  std::uint8_t *known, *unwritten;
};

// S and P: from slots to keys.
void put_keys(const Slots& slots, const Cells& cells, bool by_slot, const Target& to) {
  const std::vector<std::uint8_t>& known = *cells.known;
  for (std::size_t tile = 0; tile + 1 < slots.tile_begin.size(); ++tile) {
    const auto end = static_cast<std::size_t>(slots.tile_begin[tile + 1]);
    for (auto i = static_cast<std::size_t>(slots.tile_begin[tile]); i < end; ++i) {
      if (slots.home[i] < 0) continue;
      const auto cell = static_cast<std::size_t>(slots.home[i]);
      to.value[cell] = (*cells.value)[i];
      to.bound[cell] = (*cells.error)[i] * kRoom;
      to.known[cell] = known.empty() ? 1 : known[by_slot ? i : tile];
    }
  }
}

void put(const Slots& slots, const RowState& state, Tensor t, std::size_t n, const Target& to) {
  if (t == Tensor::kLse) {
    *to.value = state.lse;
    *to.bound = state.lse_error * kRoom;
    *to.known = state.l_known && state.lse_known ? 1 : 0;
    return;
  }
  const Cells cells = cells_of(state, t);
  if (t == Tensor::kS || t == Tensor::kP) return put_keys(slots, cells, t == Tensor::kS, to);
  std::copy_n(cells.value->data(), n, to.value);
  std::transform(cells.error->data(), cells.error->data() + n, to.bound,
                 [](double e) { return e * kRoom; });
  if (cells.known == nullptr) {
    std::fill_n(to.known, n, (t == Tensor::kMergedL ? state.l_known : state.o_known) ? 1 : 0);
    return;
  }
  const std::size_t per_tile = n / cells.known->size();
  for (std::size_t i = 0; i < n; ++i) to.known[i] = (*cells.known)[i / per_tile];
}

void leave_unwritten(std::size_t n, const Target& to, bool for_certain = true) {
  std::fill_n(to.value, n, 0.0);
  std::fill_n(to.bound, n, 0.0);
  std::fill_n(to.known, n, std::uint8_t{0});
  std::fill_n(to.unwritten, n, for_certain ? std::uint8_t{1} : std::uint8_t{0});
}

void put_lse_of(const std::optional<RowIndex>& row, Evaluator& evaluator, const Target& to) {
  if (!row) return leave_unwritten(1, to);
  RowState state;
  evaluator.evaluate(*row, state);
  put(evaluator.slots(), state, Tensor::kLse, 1, to);
}

// What a row's sums are stored as when the loop is over, o apart.
bool made_of_sums(Tensor t) {
  return t == Tensor::kLse || t == Tensor::kMergedL || t == Tensor::kMergedO;
}

bool defined(const PredictionInputs::Data& c, Tensor t) {
  return c.geometry.has_split_merge || (t != Tensor::kMergedL && t != Tensor::kMergedO);
}

Target target_of(Prediction::Values& values, std::size_t r, std::size_t n) {
  return {values.value.data() + r * n, values.bound.data() + r * n, values.known.data() + r * n,
          values.unwritten.data() + r * n};
}

// Stores every wanted tensor of row r of `rows`.
void put_row(const Slots& slots, const RowState& state, std::size_t r, std::size_t rows,
             Prediction& out) {
  for (const TensorInfo& t : kTensors) {
    Prediction::Values& values = out[t.id];
    if (values.value.empty()) continue;
    const std::size_t n = values.value.size() / rows;
    put(slots, state, t.id, n, target_of(values, r, n));
  }
}

}  // namespace

void predict(const PredictionInputs& c, std::span<const RowIndex> rows, const Deviation& deviation,
             std::uint32_t tensors, Prediction& out) {
  const PredictionInputs::Data& data = c.data();
  for (const TensorInfo& t : kTensors) {
    Prediction::Values& values = out[t.id];
    const bool wanted = (tensors & tensor_bit(t.id)) != 0 && defined(data, t.id);
    const std::size_t cells =
        wanted ? rows.size() * static_cast<std::size_t>(data.cells_per_row(t.id)) : 0;
    values.value.resize(cells);
    values.bound.resize(cells);
    values.known.resize(cells);
    values.unwritten.assign(cells, 0);
  }
  Evaluator evaluator(data, deviation, tensors);
  // Rows whose o comes from elsewhere have an evaluator of their own.
  const bool moved = deviation.store != StoreChange{} && !out[Tensor::kO].value.empty();
  std::optional<Evaluator> source, lse_evaluator;
  if (moved) source.emplace(data, deviation, tensor_bit(Tensor::kO));
  std::optional<StoredOutput> stored;
  if (moved) stored.emplace(data, deviation.store, *source);
  const std::uint32_t evaluated = moved ? tensors & ~tensor_bit(Tensor::kO) : tensors;
  const bool lse_moved = deviation.store.lse != LsePlace::kRight;
  if (lse_moved) lse_evaluator.emplace(data, deviation, tensor_bit(Tensor::kLse));
  std::optional<Evaluator> elsewhere;
  if (deviation.place.rows != RowPlace{}) elsewhere.emplace(data, Deviation{}, tensors);
  RowState state;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (elsewhere &&
        !holds(deviation.place.rows, data.geometry, rows[r].batch, rows[r].head, rows[r].query)) {
      elsewhere->evaluate(rows[r], state);
      put_row(elsewhere->slots(), state, r, rows.size(), out);
      continue;
    }
    const bool owned = owns(data, deviation.store, rows[r].query);
    const std::optional<std::int32_t> other =
        owned ? std::nullopt : left_over(data, deviation.store, rows[r].query);
    if ((owned || other) && evaluated != 0)
      evaluator.evaluate({rows[r].batch, rows[r].head, other.value_or(rows[r].query)}, state);
    for (const TensorInfo& t : kTensors) {
      Prediction::Values& values = out[t.id];
      if (values.value.empty()) continue;
      const std::size_t n = values.value.size() / rows.size();
      const Target to = target_of(values, r, n);
      if (t.id == Tensor::kO && moved)
        stored->cells(rows[r], to.value, to.bound, to.known, to.unwritten);
      else if (!owned && !(other && made_of_sums(t.id)))
        // A merge makes some lse even of what it finds in the workspace: its max may pass over NaN.
        leave_unwritten(n, to, !(data.geometry.has_split_merge && t.id == Tensor::kLse));
      else if (t.id == Tensor::kLse && lse_moved)
        put_lse_of(lse_source(data.problem, deviation.store.lse, rows[r]), *lse_evaluator, to);
      else
        put(evaluator.slots(), state, t.id, n, to);
    }
  }
}

}  // namespace attn_diag::reference

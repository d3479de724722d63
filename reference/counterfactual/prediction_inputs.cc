#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "reference/counterfactual/prediction_inputs_data.h"
#include "reference/counterfactual/slots.h"
#include "reference/counterfactual/weighted_rows.h"
#include "reference/mask.h"
#include "reference/plan.h"
#include "reference/widen.h"

namespace attn_diag::reference {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument("counterfactual: " + message);
}

// The whole tensor as one head of one row per element row: memory order is kept.
std::shared_ptr<const Operand> widen(const Problem& p, const void* data, std::int32_t heads,
                                     std::int32_t seqlen, std::int32_t dim) {
  const auto x = std::make_shared<Operand>();
  x->heads = heads;
  x->seqlen = seqlen;
  x->dim = dim;
  x->strides = dense_strides(p.layout, heads, seqlen, dim);
  const std::int64_t rows_of_batch = std::int64_t{heads} * seqlen;
  x->values.resize(static_cast<std::size_t>(p.batch * rows_of_batch * dim));
  require(rows_of_batch <= std::numeric_limits<std::int32_t>::max(),
          "heads * seqlen must fit into 32 bits, found " + std::to_string(rows_of_batch));
  const auto rows = static_cast<std::int32_t>(rows_of_batch);
  for (std::int32_t b = 0; b < p.batch; ++b)
    widen_rows(data, p.dtype, Layout::kBHSD, 1, rows, dim, b, 0, 0, rows,
               x->values.data() + b * rows_of_batch * dim);
  x->norms.resize(static_cast<std::size_t>(p.batch * rows_of_batch));
  double* norms = x->norms.data();
  for (std::int32_t b = 0; b < p.batch; ++b)
    for (std::int32_t head = 0; head < heads; ++head, norms += seqlen)
      row_norms(x->values.data() + x->row_offset(b, head, 0), x->strides.seq, seqlen, dim, norms);
  return x;
}

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void check_extras(const Problem& p, const Extras& extras) {
  if (extras.bias.empty()) return;
  require((extras.bias_batch == 1 || extras.bias_batch == p.batch) &&
              (extras.bias_heads == 1 || extras.bias_heads == p.heads),
          "the bias must have 1 or " + std::to_string(p.batch) + " batches and 1 or " +
              std::to_string(p.heads) + " heads, found " + std::to_string(extras.bias_batch) +
              " and " + std::to_string(extras.bias_heads));
  const std::int64_t cells =
      std::int64_t{extras.bias_batch} * extras.bias_heads * p.seqlen_q * p.seqlen_k;
  require(static_cast<std::int64_t>(extras.bias.size()) == cells,
          "the bias must have " + std::to_string(cells) + " elements, found " +
              std::to_string(extras.bias.size()));
}

}  // namespace

std::int64_t PredictionInputs::Data::cells_per_row(Tensor t) const {
  const TensorInfo& tensor = info(t);
  std::int64_t cells = 1;
  for (int i = 3; i < tensor.rank; ++i)
    cells *= axis_extent(tensor.axes[static_cast<std::size_t>(i)], problem, geometry);
  return cells;
}

const float* PredictionInputs::Data::given_row(Tensor t, const RowIndex& row) const {
  const std::int64_t index =
      (std::int64_t{row.batch} * problem.heads + row.head) * problem.seqlen_q + row.query;
  return given[static_cast<std::size_t>(t)].data() + index * cells_per_row(t);
}

PredictionInputs::PredictionInputs(const Problem& problem, const Geometry& geometry,
                                   const Arithmetic& arithmetic, const Inputs& inputs,
                                   Extras extras, std::vector<GivenTensor> given) {
  make_plan(problem, geometry, arithmetic, inputs, {});  // checks that they fit together
  check_extras(problem, extras);
  const auto data = std::make_shared<Data>();
  data->serial = next_serial();
  data->problem = problem;
  data->geometry = geometry;
  data->arithmetic = arithmetic;
  data->extras = std::move(extras);
  data->tiles = kv_tile_count(problem, geometry);
  data->plain_slots = std::make_shared<const Slots>(*data, MaskChange{});
  data->q = widen(problem, inputs.q, problem.heads, problem.seqlen_q, problem.head_dim);
  data->k = widen(problem, inputs.k, problem.kv_heads, problem.seqlen_k, problem.head_dim);
  data->v = widen(problem, inputs.v, problem.kv_heads, problem.seqlen_k, problem.head_dim_v);
  const std::int64_t rows = std::int64_t{problem.batch} * problem.heads * problem.seqlen_q;
  for (GivenTensor& tensor : given) {
    require(stage_of(tensor.id) != Stage::kReduce,
            "only inputs of stages can be given (S, m, l, P, partial_o), found " +
                std::string(name(tensor.id)));
    const std::int64_t cells = rows * data->cells_per_row(tensor.id);
    require(static_cast<std::int64_t>(tensor.values.size()) == cells,
            std::string(name(tensor.id)) + " must have " + std::to_string(cells) +
                " elements, found " + std::to_string(tensor.values.size()));
    data->given[static_cast<std::size_t>(tensor.id)] = std::move(tensor.values);
  }
  x_data = data;
}

const Problem& PredictionInputs::problem() const { return x_data->problem; }
const Geometry& PredictionInputs::geometry() const { return x_data->geometry; }
const Arithmetic& PredictionInputs::arithmetic() const { return x_data->arithmetic; }

PredictionInputs PredictionInputs::with_geometry(const Geometry& geometry) const {
  const Data& old = *x_data;
  const Inputs present{old.q->values.data(), old.k->values.data(), old.v->values.data()};
  make_plan(old.problem, geometry, old.arithmetic, present, {});
  const auto data = std::make_shared<Data>();
  data->serial = next_serial();
  data->problem = old.problem;
  data->geometry = geometry;
  data->arithmetic = old.arithmetic;
  data->extras = old.extras;
  data->tiles = kv_tile_count(old.problem, geometry);
  data->plain_slots = std::make_shared<const Slots>(*data, MaskChange{});
  data->q = old.q;
  data->k = old.k;
  data->v = old.v;
  PredictionInputs other = *this;
  other.x_data = data;
  return other;
}

}  // namespace attn_diag::reference

#include "tools/python/module/shrink.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"
#include "harness/capture/capture_fields.h"
#include "harness/report/shrink_text.h"
#include "harness/shrink/judge.h"
#include "harness/shrink/shrink.h"
#include "tools/python/module/function.h"

namespace attn_diag::python {
namespace {

namespace py = pybind11;

ForeignArray dense(ForeignRole role, DType type, std::vector<std::int64_t> shape,
                   const void* data) {
  return {role, type, std::move(shape), {}, data};
}

// As the arrays of a run would be read from a file, so that the saved case is judged as it is here.
ForeignCase case_of_run(const Capture& c) {
  const Problem& p = c.problem;
  const bool bhsd = p.layout == Layout::kBHSD;
  const auto shape = [&](std::int64_t heads, std::int64_t rows, std::int64_t dim) {
    return bhsd ? std::vector<std::int64_t>{p.batch, heads, rows, dim}
                : std::vector<std::int64_t>{p.batch, rows, heads, dim};
  };
  std::vector<ForeignArray> arrays = {
      dense(ForeignRole::kQ, p.dtype, shape(p.heads, p.seqlen_q, p.head_dim), c.q.data()),
      dense(ForeignRole::kK, p.dtype, shape(p.kv_heads, p.seqlen_k, p.head_dim), c.k.data()),
      dense(ForeignRole::kV, p.dtype, shape(p.kv_heads, p.seqlen_k, p.head_dim_v), c.v.data())};
  const TensorData& o = c[Tensor::kO];  // [batch][head][query][dim]
  arrays.push_back(
      dense(ForeignRole::kO, o.dtype, shape(p.heads, p.seqlen_q, p.head_dim_v), o.bytes.data()));
  const std::int64_t row = p.head_dim_v, head = row * p.seqlen_q, batch = head * p.heads;
  arrays.back().strides = bhsd ? std::vector<std::int64_t>{batch, head, row, 1}
                               : std::vector<std::int64_t>{batch, row, head, 1};
  if (c.has(Tensor::kLse))
    arrays.push_back(dense(ForeignRole::kLse, c[Tensor::kLse].dtype, {p.batch, p.heads, p.seqlen_q},
                           c[Tensor::kLse].bytes.data()));
  ForeignHints hints;
  hints.layout = p.layout;
  hints.dtype = p.dtype;
  hints.softmax_scale = p.softmax_scale;
  hints.mask = text(p.mask);
  ForeignCase out = take_foreign(arrays, hints);
  out.capture.repetition = c.repetition;
  out.capture.input_writes = c.input_writes;
  return out;
}

py::list elements_of(const shrink::TriedCase& one) {
  py::list out;
  for (const std::vector<double>& values : shrink::numbers_of(one).values) {
    py::list nonzero;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != 0 || std::signbit(values[i])) nonzero.append(py::make_tuple(i, values[i]));
    out.append(std::move(nonzero));
  }
  return out;
}

}  // namespace

Shrunk shrink_function(const std::string& name, const py::function& call,
                       const ForeignCase& example, const ShrinkWishes& wishes,
                       const py::object& on_step) {
  if (wishes.runs < 1) throw Error(fmt::format("runs is {}; expected at least 1.", wishes.runs));
  if (!(wishes.seconds > 0))
    throw Error(fmt::format("seconds is {}; expected more than 0.", wishes.seconds));
  const Function function(name, call, example, wishes.square);
  const Kernel kernel = function.kernel();
  shrink::ShrinkOptions options;
  options.seconds = wishes.seconds;
  options.keep_values = wishes.keep_values;
  options.hold = wishes.hold;
  // The function makes its mask itself, and has one.
  if (example.capture.problem.mask.kind == MaskKind::kWindow)
    options.hold.insert(options.hold.end(), {"window_left", "window_right"});
  Experiment experiment{kernel, example.capture.problem, function.inputs(), {}, wishes.tolerance};
  experiment.run.taps = false;
  experiment.run.gate = Gate::kFull;
  options.judge =
      [&, judge = shrink::judge_by_running(experiment, wishes.runs)](const shrink::TriedCase& one) {
        shrink::Told told = judge(one);
        if (function.was_interrupted()) function.rethrow();
        return told;
      };
  options.on_step = [&](int step, int steps, const std::string& what) {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!on_step.is_none()) on_step(step, steps, what);
  };
  Shrunk out;
  report::ShrinkView view;
  view.of_function = true;
  view.kernel = name;
  view.backend = "Python";
  view.tolerance = wishes.tolerance;
  {
    const py::gil_scoped_release released;
    view.result = shrink::shrink(experiment, options);
    if (view.result.fails) {
      const shrink::TriedCase& sized = view.result.before_values;
      out.sized = std::make_shared<ForeignCase>(
          case_of_run(run_kernel(experiment.with(sized.problem, *sized.inputs))));
    }
  }
  out.fails = view.result.fails;
  out.headline = report::shrink_headline(view);
  out.text = report::shrink_text(view, {}, false);
  out.json = report::dump_json(report::shrink_json(view, {"shrink", "", ATTN_DIAG_VERSION}));
  if (out.fails) out.elements = elements_of(view.result.smallest);
  return out;
}

}  // namespace attn_diag::python

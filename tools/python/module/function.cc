#include "tools/python/module/function.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "attn_diag/harness/error.h"
#include "tools/python/module/arrays.h"

namespace attn_diag::python {
namespace {

namespace py = pybind11;

constexpr TileShape kTile{64, 64};  // of unknown_geometry()

// KernelInfo's functions have no argument for it.
thread_local Function* active = nullptr;
thread_local DType active_output = DType::kFp32;

std::uint32_t mask_bits(const Problem& p) {
  if (p.mask.kind == MaskKind::kNone) return kTakesNoMask;
  if (p.mask.kind == MaskKind::kWindow) return kTakesWindow;
  return kTakesCausalSquare |
         (p.mask.alignment == CausalAlignment::kTopLeft ? kTakesCausalTopLeft
                                                        : kTakesCausalBottomRight);
}

Status plan(const Problem& problem, TileShape, std::int32_t, Geometry* geometry, char*,
            std::size_t) {
  *geometry = unknown_geometry(problem);
  return Status::kOk;
}

Arithmetic arithmetic(const Problem& problem, const Geometry&) {
  Arithmetic a = unknown_arithmetic(problem);
  a.output = active_output;
  return a;
}

std::size_t no_workspace(const Problem&, const Geometry&) { return 0; }

py::memoryview bytes_at(const void* data, std::int64_t elements, DType type) {
  return py::memoryview::from_memory(data, elements * static_cast<std::int64_t>(size_of(type)));
}

// The first line.
void say(const RunRequest& request, const std::string& words) {
  const std::size_t n =
      words.substr(0, words.find('\n')).copy(request.error, request.error_capacity - 1);
  request.error[n] = 0;
}

void copy_o(const TensorData& o, const RunRequest& r) {
  const Problem& p = r.problem;
  const Strides to = dense_strides(p.layout, p.heads, p.seqlen_q, p.head_dim_v);
  std::int64_t from = 0;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t s = 0; s < p.seqlen_q; ++s)
        for (std::int64_t d = 0; d < p.head_dim_v; ++d)
          store_element(r.o, p.dtype, b * to.batch + h * to.head + s * to.seq + d, o.at(from++));
}

}  // namespace

Function::Function(std::string name, py::function call, const ForeignCase& example, bool square)
    : x_name(std::move(name)), x_call(std::move(call)) {
  const Capture& c = example.capture;
  const Problem& p = c.problem;
  x_inputs = {c.q, c.k, c.v, "the caller's", 0, 1, false};
  for (const auto* bytes : {&c.q, &c.k, &c.v})
    x_inputs.has_nonfinite = x_inputs.has_nonfinite || has_nonfinite(*bytes, p.dtype);
  x_has_lse = c.has(Tensor::kLse);
  // o goes through memory of the problem's type.
  x_output = size_of(c.arithmetic.output) > size_of(p.dtype) ? p.dtype : c.arithmetic.output;
  x_support.dtypes = 1u << static_cast<unsigned>(p.dtype);
  x_support.layouts = 1u << static_cast<unsigned>(p.layout);
  x_support.masks = mask_bits(p);
  if (square && p.mask.kind == MaskKind::kCausal) x_support.masks = kTakesCausalSquare;
  x_support.other_head_dim_v = x_support.grouped_heads = x_support.other_seqlen_k = true;
  x_info.name = x_name.c_str();
  x_info.summary = "a Python function";
  x_info.tiles = &kTile;
  x_info.num_tiles = 1;
  x_info.gates = 1u << static_cast<unsigned>(Gate::kFull);
  for (TensorExposure& exposure : x_info.exposure)
    exposure.exempt_reason = "a function shows its output alone";
  x_info.support = &x_support;
  if (!x_has_lse) x_info.conventions.lse = LseConvention::kNone;
  x_info.plan = plan;
  x_info.arithmetic = arithmetic;
  x_info.workspace_bytes = no_workspace;
  x_info.run = run;
  if (active != nullptr)
    throw Error(
        fmt::format("{} was called from within a function that is being looked at.", x_name));
  active = this;
  active_output = x_output;
}

Function::~Function() { active = nullptr; }

void Function::rethrow() const {
  if (x_raised) std::rethrow_exception(x_raised);
}

Status Function::run(const RunRequest& request) {
  const py::gil_scoped_acquire gil;
  active->x_raised = nullptr;
  active->x_interrupted = false;
  try {
    active->call(request);
    return Status::kOk;
  } catch (const py::error_already_set& e) {
    active->x_raised = std::current_exception();
    active->x_interrupted = !e.matches(PyExc_Exception);
    say(request, "it raised " + std::string(e.what()));
  } catch (const std::exception& e) {
    say(request, e.what());
  }
  return Status::kLaunchFailed;
}

void Function::call(const RunRequest& r) {
  const Problem& p = r.problem;
  const std::int64_t q = std::int64_t{p.batch} * p.heads * p.seqlen_q * p.head_dim;
  const std::int64_t kv = std::int64_t{p.batch} * p.kv_heads * p.seqlen_k;
  const py::tuple sizes = py::make_tuple(p.batch, p.heads, p.kv_heads, p.seqlen_q, p.seqlen_k,
                                         p.head_dim, p.head_dim_v);
  const py::dict given = x_call(bytes_at(r.q, q, p.dtype), bytes_at(r.k, kv * p.head_dim, p.dtype),
                                bytes_at(r.v, kv * p.head_dim_v, p.dtype), sizes);
  const BorrowedCase borrowed(given);
  ForeignHints hints;
  hints.layout = p.layout;
  hints.dtype = p.dtype;
  hints.softmax_scale = p.softmax_scale;
  hints.mask = "none";
  const ForeignCase out = take_foreign(borrowed.arrays(), hints);
  const Capture& c = out.capture;
  // What the function wrote into its inputs, the harness sees in its own.
  for (const auto& [bytes, to] : {std::pair{&c.q, r.q}, {&c.k, r.k}, {&c.v, r.v}})
    std::memcpy(const_cast<void*>(to), bytes->data(), bytes->size());
  copy_o(c[Tensor::kO], r);
  if (c.has(Tensor::kLse) != x_has_lse)
    throw Error(x_has_lse ? "it returned o and lse before, and now o alone."
                          : "it returned o alone before, and now o and lse.");
  if (x_has_lse)
    for (std::int64_t i = 0; i < c[Tensor::kLse].size(); ++i)
      r.lse[i] = static_cast<float>(c[Tensor::kLse].at(i));
}

}  // namespace attn_diag::python

// Runs of a kernel, recorded.
#include "attn_diag/harness/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/gpu.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/reference/reference.h"
#include "harness/backends/cuda/run_on_gpu.h"
#include "harness/backends/make_run_device.h"
#include "harness/backends/run_device.h"
#include "harness/capture/oracle.h"
#include "harness/inputs/coded_inputs.h"
#include "harness/library/code_words.h"
#include "harness/library/draft_note.h"
#include "harness/run/conventions.h"
#include "harness/run/coverage.h"
#include "harness/run/input_writes.h"
#include "harness/run/repetition.h"
#include "harness/run/replacements.h"
#include "harness/run/run_memory.h"
#include "harness/run/run_plan.h"

namespace attn_diag {
namespace {

void check_inputs(const Problem& p, const InputData& inputs) {
  const std::int64_t kv_rows = std::int64_t{p.batch} * p.kv_heads * p.seqlen_k;
  const std::array<std::tuple<const char*, std::size_t, std::int64_t>, 3> fields = {
      {{"q", inputs.q.size(), rows_of(p) * p.head_dim},
       {"k", inputs.k.size(), kv_rows * p.head_dim},
       {"v", inputs.v.size(), kv_rows * p.head_dim_v}}};
  for (const auto& [what, found, elements] : fields) {
    const std::size_t expected = static_cast<std::size_t>(elements) * size_of(p.dtype);
    if (found != expected) {
      throw Error(fmt::format("The problem needs {} bytes of {}, but {} were given.", expected,
                              what, found));
    }
  }
}

TensorData allocate(Tensor t, DType dtype, bool with_values, const Capture& capture) {
  TensorData data;
  data.id = t;
  data.dtype = dtype;
  data.shape = tensor_shape(t, capture.problem, capture.geometry);
  data.origin.assign(data.shape.size(), 0);
  for (std::size_t i = 0; i < 3; ++i) {
    data.shape[i] = capture.region.extent[i];
    data.origin[i] = capture.region.origin[i];
  }
  const auto cells = static_cast<std::size_t>(data.size());
  if (with_values) data.bytes.assign(cells * size_of(dtype), std::byte{0xFF});
  data.writes.assign(cells, 0);
  return data;
}

TapView view_of(TensorData& data, const Region& region, RunDevice& device, std::size_t guard) {
  TapView view;
  const std::string what(name(data.id));
  view.record = static_cast<float*>(
      device.place("the tap of " + what, data.bytes.data(), data.bytes.size(), guard, true));
  view.writes = static_cast<std::uint8_t*>(device.place(
      "the write counts of " + what, data.writes.data(), data.writes.size(), guard, true));
  for (std::size_t i = 0; i < 3; ++i) {
    view.origin[i] = region.origin[i];
    view.extent[i] = region.extent[i];
  }
  view.inner0 = data.shape.size() > 3 ? data.shape[3] : 1;
  view.inner1 = data.shape.size() > 4 ? data.shape[4] : 1;
  return view;
}

std::string now_utc() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

std::string host_name() {
  std::array<char, 256> name_of_host{};
  if (gethostname(name_of_host.data(), name_of_host.size() - 1) != 0) return "";
  return name_of_host.data();
}

void fill_provenance(Capture& capture, const Kernel& kernel, const InputData& inputs,
                     const RunOptions& options, Gate gate) {
  Provenance& p = capture.provenance;
  p = kernel.provenance();
  p.backend = kernel.build().backend;
  if (p.backend == "cuda") {
    p.device = text(gpu_state().gpus.front());
    p.driver = gpu_state().driver();
  } else if (p.backend == "host") {
    p.device = "SIMT host executor";
    p.schedule = options.schedule;
    p.mma_order = options.mma_order;
    p.async_copies = options.async_copies;
  }
  p.gate = name(gate);
  p.created = now_utc();
  p.generator_version = ATTN_DIAG_VERSION;
  p.host = host_name();
  p.inputs = inputs.kind;
  p.seed = inputs.seed;
  p.input_scale = inputs.scale;
}

void check_gate(const Kernel& kernel, Gate gate) {
  if (has_gate(kernel.info(), gate)) return;
  std::string there;
  for (std::size_t g = 0; g < kGateNames.size(); ++g) {
    if (!has_gate(kernel.info(), static_cast<Gate>(g))) continue;
    there += (there.empty() ? "" : ", ") + std::string(kGateNames[g]);
  }
  throw Error(fmt::format("{} was built without gate {}. It has: {}.", kernel.spec(), name(gate),
                          there.empty() ? "none" : there));
}

// What is the same for every run of a case.
class PreparedRun {
 public:
  PreparedRun(const Experiment& experiment, const std::shared_ptr<Replacements>& ready)
      : x_kernel(experiment.kernel),
        x_given(experiment.inputs),
        x_options(experiment.run),
        x_gate(x_options.taps ? x_options.gate : Gate::kFull),
        x_on_gpu(std::string_view(x_kernel.build().backend) == "cuda") {
    const auto& [kernel, problem, inputs, options, tolerance, oracle] = experiment;
    check_gate(kernel, x_gate);
    const Geometry geometry = plan_geometry(kernel, problem, options);
    const std::uint32_t replaced = replaced_tensors(kernel, geometry, options);
    const bool is_ready = ready != nullptr && (replaced & ~ready->tensors()) == 0;
    RunOptions taking_memory = options;
    if (is_ready) taking_memory.isolate = false, taking_memory.replace = 0;
    check_memory(kernel, problem, geometry, taking_memory);
    if (x_on_gpu) cuda::check_device_memory(device_bytes(kernel, problem, geometry, options));

    check_inputs(problem, inputs);
    x_coded = coded_inputs(kernel, problem, inputs);

    Capture& capture = x_empty;
    capture = case_of(experiment);
    capture.isolated = options.isolate && options.taps;
    capture.q = this->inputs().q;
    capture.k = this->inputs().k;
    capture.v = this->inputs().v;
    x_between =
        make_between(problem, geometry, capture.arithmetic,
                     {capture.q.data(), capture.k.data(), capture.v.data()}, options.threads);
    x_recorded = recorded_tensors(kernel, geometry, options);
    if (capture.isolated && replaced == 0)
      throw Error(fmt::format(
          "{} cannot be fed the reference's inputs: its stages are recorded only, or not exposed. "
          "Leave out --isolate.",
          kernel.spec()));
    for (const TensorInfo& tensor : kTensors) {
      const auto at = static_cast<std::size_t>(tensor.id);
      if (tensor.id == Tensor::kLse && !has_lse())
        capture.exempt[at] = "the kernel declares that it writes none";
      if (is_recorded(tensor.id) || kernel.info().exposure[at].exposed ||
          is_output(tensor.id, part()) || !defined_for(tensor.id, geometry))
        continue;
      const char* reason = kernel.info().exposure[at].exempt_reason;
      capture.exempt[at] = reason != nullptr ? reason : "the kernel does not say why";
    }
    x_replaced = replaced;
    x_replacements = is_ready ? ready : make_replacements(capture, replaced, options.threads);
    fill_provenance(capture, kernel, this->inputs(), options, x_gate);
    if (x_on_gpu)
      capture.notes.emplace_back(cuda::limits_in_one_line());
    else if (capture.provenance.backend == "host")
      capture.notes.emplace_back(host::limits_in_one_line());
    if (const std::vector<std::string> coded = code_words(kernel.info()); !coded.empty())
      capture.notes.push_back(fmt::format("The kernel takes {}: it is judged by what they mean.",
                                          fmt::join(coded, ", ")));
    if (std::string note = draft_note(x_kernel); !note.empty())
      capture.notes.push_back(std::move(note));
    if (inputs.has_nonfinite) capture.notes.emplace_back("q, k or v hold NaN or infinity.");
  }

  Capture run() {
    Capture capture = x_empty;
    const std::unique_ptr<RunDevice> device = make_run_device(x_kernel, x_options);
    const std::size_t guard = guard_bytes(capture.problem, capture.geometry);
    RunMemory memory(capture.problem, capture.geometry, inputs(),
                     x_kernel.info().workspace_bytes(capture.problem, capture.geometry),
                     x_options.fill, x_between);
    RunRequest request;
    request.problem = capture.problem;
    request.geometry = capture.geometry;
    request.gate = x_gate;
    std::copy(std::begin(x_kernel.info().codes), std::end(x_kernel.info().codes), request.codes);
    memory.place(*device, request, guard);
    for (const TensorInfo& tensor : kTensors) {
      const auto at = static_cast<std::size_t>(tensor.id);
      TapView& view = request.taps.view[at];
      if (is_recorded(tensor.id)) {
        const DType dtype = tensor.id == Tensor::kO ? capture.problem.dtype : DType::kFp32;
        capture.tensors[at] = allocate(tensor.id, dtype, !is_output(tensor.id, part()), capture);
        view = view_of(*capture.tensors[at], capture.region, *device, guard);
      }
      if ((x_replaced & tensor_bit(tensor.id)) == 0) continue;
      std::vector<float>& values = (*x_replacements)[tensor.id];
      view.replace = static_cast<const float*>(
          device->place("the replacement of " + std::string(tensor.name), values.data(),
                        values.size() * sizeof(float), guard, false));
    }

    const DeviceReport report = device->run(x_kernel, request);
    capture.notes.insert(capture.notes.end(), report.remarks.begin(), report.remarks.end());
    memory.check_guards(x_kernel);
    capture.input_writes = find_input_writes(capture.problem, inputs(), x_between, memory);
    for (const Tensor t : outputs_of(part()))
      if (is_recorded(t))
        take_output(*capture.tensors[static_cast<std::size_t>(t)], memory, capture);
    settle_coverage(capture);
    require_something_written(capture, report.launches);
    apply_conventions(x_kernel.info().conventions, capture);
    return capture;
  }

  const Capture& before() const { return x_empty; }

  // A GPU orders its threads as it likes: what comes out may differ from run to run.
  bool is_repeated() const { return x_on_gpu; }

 private:
  // As the kernel is given them.
  const InputData& inputs() const { return x_coded ? *x_coded : x_given; }
  Part part() const { return x_kernel.info().part; }
  bool has_lse() const { return x_kernel.info().conventions.lse != LseConvention::kNone; }
  bool is_recorded(Tensor t) const {
    if (t == Tensor::kLse && !has_lse()) return false;
    return (x_recorded & tensor_bit(t)) != 0 ||
           (is_output(t, part()) && stage_of(t) <= last_stage(x_gate));
  }

  // Host code that returns early has no output to judge. Without a launch it may have computed one all the
  // same; of a GPU only the output tells.
  void require_something_written(const Capture& capture,
                                 std::optional<std::uint64_t> launches) const {
    if (launches.value_or(0) > 0 || x_options.fill[GivenMemory::kOutput] != MemoryFill::kNaN)
      return;
    std::int64_t cells = 0, never = 0;
    for (const std::optional<TensorData>& data : capture.tensors)
      if (data) cells += data->size();
    for (const Coverage& coverage : capture.coverage) never += coverage.never;
    if (never < cells || cells == 0) return;
    throw Error(fmt::format(
        "{} left no result: {}, and nothing that it was to write was written. Nothing was judged. "
        "{}",
        x_kernel.spec(), launches ? "its host code launched no kernel" : "no launch failed",
        launches
            ? "Look for what made it return early: a check of shapes or types, an error that it "
              "printed."
            : "Either its host code launched no kernel, or what it launched stores nothing "
              "where o is; --backend host tells which."));
  }

  const Kernel& x_kernel;
  const InputData& x_given;
  std::optional<InputData> x_coded;
  const RunOptions& x_options;
  Gate x_gate;
  bool x_on_gpu;
  std::uint32_t x_recorded = 0, x_replaced = 0;
  std::shared_ptr<Replacements> x_replacements;
  Between x_between;
  Capture x_empty;  // what is known before a run
};

}  // namespace

std::shared_ptr<Oracle> make_oracle() { return std::make_shared<Oracle>(); }

Capture run_kernel(const Experiment& experiment) { return run_kernel(experiment, nullptr); }

Capture run_kernel(const Experiment& given, const std::shared_ptr<Replacements>& ready) {
  const Kernel& kernel = given.kernel;
  Experiment experiment = given;
  if (host::is_lockstep(given.run.schedule) && !kernel.build().lockstep &&
      std::string_view(kernel.build().backend) == "host")
    experiment.kernel = Kernel::load(kernel.spec(), "host", true);
  // What cannot run here is refused before the reference runs.
  make_run_device(experiment.kernel, experiment.run);
  PreparedRun one(experiment, ready);
  Capture capture = one.run();
  if (one.is_repeated()) add_repetition(capture, one.run());
  if (capture.repetition.moved()) {
    capture.repetition.within_rounding =
        near_each_other(capture, *capture.repetition.second, Tolerance{});
    capture.notes.push_back(repetition_text(capture.repetition));
  }
  return capture;
}

Capture capture_before_run(const Experiment& experiment) {
  return PreparedRun(experiment, nullptr).before();
}

}  // namespace attn_diag
